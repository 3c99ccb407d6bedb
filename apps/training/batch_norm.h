#pragma once

#include <vector>

#include "apps/training/ranks.h"
#include "models/model.h"

namespace tessera {

/// The images whose mean and variance a batch norm takes in training: all of the batch, or those of its
/// micro-batch alone, as where each of several GPUs normalises its own part of a batch.
enum class BatchNormStatistics { batch, micro_batch };

/// Whether the model has batch norms, whose statistics are of the images that go through together.
bool has_batch_norm(const Model& model);

/// Moves the running statistics of a model's batch norms by each micro-batch of a step in turn, in one order
/// whichever ranks compute them: each micro-batch moves statistics that are zero, and what that gives is
/// m_i = momentum * (mean or variance of micro-batch i). After the step, for i = 0, 1, ...
///   running = (1 - momentum) * running + m_i
class RunningStatistics {
 public:
  /// `model`: the one whose forward passes move its statistics.
  RunningStatistics(const Model& model, Ranks& ranks);

  void begin(int64_t parts);  ///< before a step of so many micro-batches
  void begin_part() const;    ///< before a micro-batch's forward pass
  void end_part(int64_t part) const;
  void finish();  ///< after all; this rank has computed its share_of() the micro-batches

 private:
  Tensor row(int64_t part) const { return moves_.rows(part, 1); }

  std::vector<Tensor> statistics_;
  Ranks& ranks_;
  Tensor before_, moves_;  ///< [S] all statistics, and what each micro-batch gives. [parts, S]
};

}  // namespace tessera
