#include "models/model.h"

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
#include "engine/core/machine_memory.h"
#include "engine/ops/loss.h"
#include "models/architectures.h"

namespace tessera {

namespace {

int64_t size_in(const Json& config, const char* key, int64_t otherwise) {
  return config.contains(key) ? config.at(key).get<int64_t>() : otherwise;
}

void check_images(const Json& config, const Tensor& images) {
  const int64_t channels = size_in(config, "in_channels", 3), side = size_in(config, "image_size", 0);
  check(images.rank() == 4 && images.dim(1) == channels && images.dim(2) == side && images.dim(3) == side,
        "model: images ", images.shape(), ", this ", config.at("arch").get<std::string>(), " takes [B, ",
        channels, ", ", side, ", ", side, "]");
}

constexpr int64_t most_layers = 4096, largest_size = int64_t{1} << 20;

// Bounds for every integer of a config, so that no file keeps the machine busy with a model that none can
// hold.
void check_sizes(const Json& value, const std::string& key) {
  if (value.is_structured()) {
    for (const auto& [name, inner] : value.items()) check_sizes(inner, value.is_array() ? key : name);
    return;
  }
  if (!value.is_number_integer()) return;
  const int64_t most = key.find("depth") == key.npos ? largest_size : most_layers;
  check(value <= Json(most) && value >= Json(-most), "model: ", key, " is ", value.dump(),
        ", wanted at most ", most);
}

// A dry run counts the weights before any is made.
void check_weights_fit(const Json& config, DType dtype) {
  if (DryRun::active()) return;
  const DryRun dry;
  const Model model = build(config, {.dtype = dtype});
  double bytes = 0;
  for (const Parameter& p : model.parameters) bytes += static_cast<double>(p.value.bytes());
  check_memory(bytes, "model: the weights of this config need");
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

Model build(const Json& given, const BuildOptions& options) {
  const Json config = without_nulls(given);
  check(config.is_object() && config.contains("arch") && config.at("arch").is_string(),
        "model: a config is an object with \"arch\", the name of its architecture");
  const std::string arch = config.at("arch").get<std::string>();
  const Architecture* row = find_architecture(arch);
  if (!row) {
    std::vector<std::string> known;
    for (const Architecture& each : architectures()) known.push_back(each.name);
    fail("model: unknown arch '", arch, "'", did_you_mean(arch, known));
  }
  check_sizes(config, "");
  check_weights_fit(config, options.dtype);
  Model model;
  model.config = config;
  model.task = row->task;
  const Scope scope(model.parameters, options.seed, options.dtype, options.device);
  row->make(model, scope);
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

Cost cost_of(const Json& config, bool answer_only) {
  const DryRun dry;
  const Model model = build(config);
  Cost cost{model.parameters.trainable_count(), 0};
  const Observer observer([&](const ForwardEvent& event) { cost.macs += event.macs; });
  Pass pass{.answer_only = answer_only};
  model.forward_all(Tensor::empty({1, model.in_channels(), model.image_size(), model.image_size()}), pass);
  return cost;
}

}  // namespace tessera
