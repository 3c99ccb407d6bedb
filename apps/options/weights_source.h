#pragma once

#include <string>
#include <vector>

#include "apps/options/command.h"
#include "apps/options/model_source.h"
#include "apps/training/checkpoint.h"

namespace tessera {

// Weights without a run, such as a .safetensors file saved by timm. The command line gives what a checkpoint
// would hold besides.
class WeightsSource {
 public:
  // Adds --weights FILE, and what goes with it: --model, --image-size, --classes, --resize-positions,
  // --names,
  // --mean and --deviation.
  void add_to(Command& command);

  bool given() const { return !file_.empty(); }
  // As if it had been read from a checkpoint whose data set is not known (data.source.name is empty). Fails
  // with a list of whatever of the weights does not fit the model, and for other than a name a class.
  Checkpoint read(Device device) const;

 private:
  std::vector<std::string> class_names(int64_t classes) const;

  std::string file_, names_;
  ModelSource model_;
  bool resize_positions_ = false;
  std::vector<float> mean_{imagenet_normalisation.mean.begin(), imagenet_normalisation.mean.end()};
  std::vector<float> deviation_{imagenet_normalisation.deviation.begin(),
                                imagenet_normalisation.deviation.end()};
};

}  // namespace tessera
