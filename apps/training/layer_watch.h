#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/training/layer_figures.h"
#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "models/model.h"

namespace tessera {

/// Looks at every layer during one training step, which computes as it always does: activations and gradients
/// of the values that layers give to one another, weights, and how far the step moves them. Numbers stay on
/// the device until they are asked for.
class LayerWatch {
 public:
  /// Before the step. `model` has the parameters that the optimizer moves; the one that computes may be a
  /// copy.
  explicit LayerWatch(const Model& model);

  /// Looks at a micro-batch that `tape` records, while it lives. Observes the ops of its thread.
  class Part {
   public:
    Part(LayerWatch& watch, const Tape& tape);
    void end_forward();  ///< to be called between forward and backward

   private:
    struct Output {
      const Op* op = nullptr;
      size_t step = 0;  ///< of the tape, if it recorded the op
      Tensor value{};
    };

    void look_forward(const ForwardEvent& event);
    void look_backward(const BackwardEvent& event);

    LayerWatch& watch_;
    const Tape& tape_;
    std::map<std::string, Output> outputs_;             ///< the last of each layer
    std::unordered_map<size_t, std::string> layer_of_;  ///< of the steps that made these
    size_t next_ = 0;                                   ///< steps from here on have run backward
    Observer observer_;
  };

  void look_at_gradients();  ///< after the last part, before the gradients are clipped
  void look_at_update();     ///< after the optimizer's step

  /// In the order of the model's parameters: the layers, then the heads. Waits for the device.
  std::vector<LayerFigures> figures() const;

 private:
  /// The norms of tensors, queued on their device.
  class Norms {
   public:
    size_t add(const std::vector<Tensor>& tensors);  ///< of all together; its place in values()
    std::vector<double> values() const;

   private:
    size_t count_ = 0;
    std::vector<Tensor> blocks_;  ///< [block, 3] each, see norm_on_device()
  };

  /// Places of norms whose squares add up, and the number of elements.
  struct Sum {
    std::vector<size_t> places;
    int64_t elements = 0;
  };

  struct Layer {
    std::string name;
    std::vector<Tensor> parameters{}, before{};
    Sum activation{}, gradient{}, weight{}, weight_gradient{}, update{};
  };

  Layer& layer(const std::string& name);
  void add(Sum& sum, const std::vector<Tensor>& tensors);
  std::vector<LayerFigures> figures_of_heads() const;

  std::vector<Layer> layers_;
  std::vector<std::pair<std::string, Tensor>> scales_;  ///< by module, [H], as before the step
  std::map<std::string, std::vector<Tensor>> gates_;    ///< log gates [B, N, H] of each part, by module
  Norms norms_;
};

}  // namespace tessera
