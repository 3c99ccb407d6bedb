#include "models/model.h"

#include <map>
#include <memory>

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
#include "engine/ops/loss.h"
#include "models/cait.h"
#include "models/pit.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"

namespace tessera {

namespace {

// Fills in what a model computes. A network that is no plain classifier has its own evaluate().
using Maker = void (*)(Model& model, const Scope& scope);

template <class Net> void make(Model& model, const Scope& scope) {
  const auto net = std::make_shared<const Net>(model.config, scope);
  model.logits = [net](const Tensor& images, Pass& pass) { return (*net)(images, pass); };
  if constexpr (requires(const TensorMap& inputs, Pass& pass) { net->evaluate(inputs, pass); }) {
    model.evaluate = [net](const TensorMap& inputs, Pass& pass) { return net->evaluate(inputs, pass); };
  } else {
    model.evaluate = [net](const TensorMap& inputs, Pass& pass) -> TensorMap {
      const Tensor logits = (*net)(inputs.at("input"), pass);
      return {{"logits", logits}, {"loss", cross_entropy(logits, inputs.at("target"))}};
    };
  }
}

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> known{
      {"vit", make<ViT>}, {"pit", make<PiT>}, {"swin", make<Swin>}, {"cait", make<CaiT>}, {"t2t", make<T2T>}};
  return known;
}

int64_t size_in(const Json& config, const char* key, int64_t otherwise) {
  return config.contains(key) ? config.at(key).get<int64_t>() : otherwise;
}

}  // namespace

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
    const Shape wanted{images.rank() == 4 ? images.dim(0) : 0, size_in(config, "in_channels", 3),
                       size_in(config, "image_size", 0), size_in(config, "image_size", 0)};
    check(images.shape() == wanted, "model: images ", images.shape(), ", this ",
          config.at("arch").get<std::string>(), " takes [B, ", wanted[1], ", ", wanted[2], ", ", wanted[3],
          "]");
    return forward(images, pass);
  };
  return model;
}

Cost cost_of(const Json& config) {
  const DryRun dry;
  const Model model = build(config);
  Cost cost{model.parameters.trainable_count(), 0};
  const Observer observer([&](const Event& event) { cost.macs += event.macs; });
  Pass pass;
  model.logits(Tensor::empty({1, model.in_channels(), model.image_size(), model.image_size()}), pass);
  return cost;
}

}  // namespace tessera
