#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/nn/scope.h"
#include "models/model.h"

namespace tessera {

/// One architecture: how a config that names it becomes a model, and the configs that its papers use. Each
/// architecture defines its row in its own file.
struct Architecture {
  std::string name;  ///< the config's "arch"
  Task task;
  /// Builds the network that model.config describes, its parameters in `scope`, and sets the model's
  /// functions.
  void (*make)(Model& model, const Scope& scope);
  std::vector<std::string> presets;
  /// The config of one of `presets`.
  Json (*preset)(const std::string& name, int64_t image_size, int64_t num_classes);
  int64_t patches_per_side = 1;  ///< a preset's image size must be a multiple of this
};

/// All architectures, in the order in which `tessera models` lists their presets.
const std::vector<Architecture>& architectures();

/// The row of that name, or null if there is none.
const Architecture* find_architecture(const std::string& name);

/// Sets the model's functions to those of a new Net(config, scope). Where Net has no evaluate, training_loss
/// or forward_all of its own, it is a classifier, and they are made from its logits.
template <class Net> void make_network(Model& model, const Scope& scope) {
  const auto net = std::make_shared<const Net>(model.config, scope);
  model.logits = [net](const Tensor& images, Pass& pass) { return (*net)(images, pass); };
  if constexpr (requires(const Tensor& images, Pass& pass) { net->forward_all(images, pass); })
    model.forward_all = [net](const Tensor& images, Pass& pass) { net->forward_all(images, pass); };
  else
    model.forward_all = [net](const Tensor& images, Pass& pass) { (*net)(images, pass); };
  model.evaluate = [net](const TensorMap& inputs, Pass& pass) -> TensorMap {
    if constexpr (requires { net->evaluate(inputs, pass); }) {
      return net->evaluate(inputs, pass);
    } else {
      const Tensor logits = (*net)(entry(inputs, "input"), pass);
      return {{"logits", logits}, {"loss", cross_entropy(logits, entry(inputs, "target"))}};
    }
  };
  model.training_loss = [net](const TensorMap& inputs, const LossOptions& options,
                              Pass& pass) -> TrainingLoss {
    if constexpr (requires { net->training_loss(inputs, options, pass); }) {
      return net->training_loss(inputs, options, pass);
    } else {
      const Tensor logits = (*net)(entry(inputs, "input"), pass);
      return {classifier_loss(logits, inputs, options), logits};
    }
  };
  if constexpr (requires(const TensorMap& inputs, Pass& pass) { net->draw(inputs, pass); })
    model.draw = [net](const TensorMap& inputs, Pass& pass) { return net->draw(inputs, pass); };
  if constexpr (requires(const Tensor& labels, const SampleOptions& options, Pass& pass) {
                  net->sample(labels, options, pass);
                })
    model.sample = [net](const Tensor& labels, const SampleOptions& options, Pass& pass) {
      return net->sample(labels, options, pass);
    };
  if constexpr (requires(const Tensor& maps, const Tensor& views) { net->token_targets(maps, views); })
    if (net->is_dense)
      model.token_targets = [net](const Tensor& maps, const Tensor& views) {
        return net->token_targets(maps, views);
      };
}

}  // namespace tessera
