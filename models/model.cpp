#include "models/model.h"

#include <map>
#include <memory>

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
#include "models/cait.h"
#include "models/pit.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"

namespace tessera {

namespace {

using Logits = std::function<Tensor(const Tensor&, Pass&)>;

template <class Net> Logits make(const Json& config, const Scope& scope) {
  return [net = std::make_shared<const Net>(config, scope)](const Tensor& images, Pass& pass) {
    return (*net)(images, pass);
  };
}

const std::map<std::string, Logits (*)(const Json&, const Scope&)>& makers() {
  static const std::map<std::string, Logits (*)(const Json&, const Scope&)> known{
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
  Logits forward = maker->second(config, scope);
  model.logits = [forward = std::move(forward), config](const Tensor& images, Pass& pass) {
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
