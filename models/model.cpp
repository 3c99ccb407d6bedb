#include "models/model.h"

#include <map>
#include <memory>

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
#include "engine/ops/loss.h"
#include "models/cait.h"
#include "models/dit.h"
#include "models/efficientnet.h"
#include "models/lvvit.h"
#include "models/pit.h"
#include "models/resnet.h"
#include "models/rmt.h"
#include "models/segment.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"

namespace tessera {

namespace {

// Fills in what a model computes. A network that is no plain classifier has its own evaluate() and
// training_loss().
using Maker = void (*)(Model& model, const Scope& scope);

template <class Net> void make(Model& model, const Scope& scope) {
  const auto net = std::make_shared<const Net>(model.config, scope);
  model.logits = [net](const Tensor& images, Pass& pass) { return (*net)(images, pass); };
  if constexpr (requires(const Tensor& images, Pass& pass) { net->forward_all(images, pass); })
    model.forward_all = [net](const Tensor& images, Pass& pass) { net->forward_all(images, pass); };
  else
    model.forward_all = [net](const Tensor& images, Pass& pass) { (*net)(images, pass); };
  if constexpr (requires(const TensorMap& inputs, Pass& pass) { net->evaluate(inputs, pass); }) {
    model.evaluate = [net](const TensorMap& inputs, Pass& pass) { return net->evaluate(inputs, pass); };
  } else {
    model.evaluate = [net](const TensorMap& inputs, Pass& pass) -> TensorMap {
      const Tensor logits = (*net)(entry(inputs, "input"), pass);
      return {{"logits", logits}, {"loss", cross_entropy(logits, entry(inputs, "target"))}};
    };
  }
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

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> known{{"vit", make<ViT>},
                                                  {"pit", make<PiT>},
                                                  {"swin", make<Swin>},
                                                  {"cait", make<CaiT>},
                                                  {"t2t", make<T2T>},
                                                  {"resnet", make<ResNet>},
                                                  {"efficientnet", make<EfficientNet>},
                                                  {"lvvit", make<LvVit>},
                                                  {"segment", make<Segmenter>},
                                                  {"rmt", make<RMT>},
                                                  {"sdt", make<RMT>},
                                                  {"dit", make<DiT>}};
  return known;
}

int64_t size_in(const Json& config, const char* key, int64_t otherwise) {
  return config.contains(key) ? config.at(key).get<int64_t>() : otherwise;
}

void check_images(const Json& config, const Tensor& images) {
  const int64_t channels = size_in(config, "in_channels", 3), side = size_in(config, "image_size", 0);
  check(images.rank() == 4 && images.dim(1) == channels && images.dim(2) == side && images.dim(3) == side,
        "model: images ", images.shape(), ", this ", config.at("arch").get<std::string>(), " takes [B, ",
        channels, ", ", side, ", ", side, "]");
}

}  // namespace

Tensor classifier_loss(const Tensor& logits, const TensorMap& inputs, const LossOptions& options) {
  const Tensor& target = entry(inputs, "target");
  if (is_float(target.dtype())) return cross_entropy_soft(logits, target, options);
  const auto second = inputs.find("target_b");
  if (second == inputs.end()) return cross_entropy(logits, target, options);
  return cross_entropy_mixed(logits, target, second->second, entry(inputs, "lam").item(), options);
}

const Tensor& entry(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) fail("model: a tensor '", name, "' is wanted, which is not given");
  return found->second;
}

int64_t Model::image_size() const { return size_in(config, "image_size", 0); }
int64_t Model::in_channels() const { return size_in(config, "in_channels", 3); }
int64_t Model::num_classes() const { return size_in(config, "num_classes", 0); }

std::vector<std::string> architectures() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

Model build(const Json& config, const BuildOptions& options) {
  check(config.is_object() && config.contains("arch") && config.at("arch").is_string(),
        "model: a config is an object with \"arch\", the name of its architecture");
  const std::string arch = config.at("arch").get<std::string>();
  const auto maker = makers().find(arch);
  if (maker == makers().end()) fail("model: unknown arch '", arch, "'", did_you_mean(arch, architectures()));
  Model model;
  model.config = config;
  const Scope scope(model.parameters, options.seed, options.dtype, options.device);
  maker->second(model, scope);
  model.logits = [forward = std::move(model.logits), config](const Tensor& images, Pass& pass) {
    check_images(config, images);
    return forward(images, pass);
  };
  model.training_loss = [loss = std::move(model.training_loss), config](
                            const TensorMap& inputs, const LossOptions& loss_options, Pass& pass) {
    check_images(config, entry(inputs, "input"));
    return loss(inputs, loss_options, pass);
  };
  return model;
}

Model copy_as(const Model& model, DType dtype) {
  const Device device = model.parameters.begin()->value.device();
  Model copy = build(model.config, {.dtype = dtype, .device = device});
  copy.parameters.load(model.parameters.state(), "copy_as");
  return copy;
}

Cost cost_of(const Json& config) {
  const DryRun dry;
  const Model model = build(config);
  Cost cost{model.parameters.trainable_count(), 0};
  const Observer observer([&](const ForwardEvent& event) { cost.macs += event.macs; });
  Pass pass;
  model.forward_all(Tensor::empty({1, model.in_channels(), model.image_size(), model.image_size()}), pass);
  return cost;
}

}  // namespace tessera
