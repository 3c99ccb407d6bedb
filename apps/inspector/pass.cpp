#include "apps/inspector/pass.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "models/parts/attention.h"

namespace tessera {

namespace {

constexpr std::string_view parameter_prefix = "param.";

// Everything in a record's inputs that has a name: parameters, inputs and outputs.
NamedTensors named_tensors(const Model& model, const TensorMap& inputs, const TensorMap& outputs) {
  NamedTensors named;
  for (const Parameter& p : model.parameters) named.emplace_back(p.name, p.value);
  named.insert(named.end(), inputs.begin(), inputs.end());
  for (const char* name : {"logits", "loss"})
    if (const auto found = outputs.find(name); found != outputs.end())
      named.emplace_back(name, found->second);
  return named;
}

TensorMap run(const Model& model, bool trains, const TensorMap& inputs, Pass& state) {
  if (!trains) return model.evaluate(inputs, state);
  const auto [loss, logits] = model.training_loss(inputs, {}, state);
  return {{"logits", logits}, {"loss", loss}};
}

// The gradients of a copy in double, rounded already, as those of the model itself.
void hand_gradients(const Model& from, const Model& to) {
  for (const Parameter& p : to.parameters) {
    const Tensor gradient = from.parameters.find(p.name)->grad();
    if (!p.trainable || !gradient.defined()) continue;
    p.value.leaf()->grad = gradient.to(p.value.dtype());
    p.value.leaf()->stale = false;
  }
}

}  // namespace

InspectedPass inspect_pass(const PassInputs& pass) {
  const bool rounds = pass.model.parameters.begin()->value.dtype() == DType::f32;
  const Model model = rounds ? copy_as(pass.model, DType::f64) : pass.model;
  TensorMap inputs = pass.inputs;
  if (rounds)
    for (auto& [name, x] : inputs)
      if (is_float(x.dtype())) x = x.to(DType::f64);
  Tensor& input = inputs.at("input");
  input = input.clone().require_grad();
  pass.model.parameters.zero_grad();
  const PlainAttention plain;
  Tape tape;
  tape.keep_all();
  std::optional<RoundingScope> rounding;
  if (rounds) rounding.emplace(tape);
  Pass state{.training = pass.training, .random = Random(0), .drop = false};
  const TensorMap outputs = run(model, pass.trains, inputs, state);
  const Tensor& loss = entry(outputs, "loss");
  tape.backward(loss);
  const auto logits = outputs.find("logits");
  InspectedPass seen{PassRecord(tape, named_tensors(model, inputs, outputs)), loss.item(),
                     logits == outputs.end() ? Tensor() : logits->second.detach()};
  if (rounds) {
    seen.roundings = rounding->finish(seen.record);
    hand_gradients(model, pass.model);
    seen.record.convert(DType::f32);
    if (seen.logits.defined()) seen.logits = seen.logits.to(DType::f32);
  }
  return seen;
}

double loss_of_pass(const PassInputs& pass) {
  TensorMap inputs = pass.inputs;
  Tensor& input = inputs.at("input");
  input = input.clone().require_grad();
  const PlainAttention plain;
  Tape tape;
  tape.keep_all();
  Pass state{.training = pass.training, .random = Random(0), .drop = false};
  return entry(run(pass.model, pass.trains, inputs, state), "loss").item();
}

PassInputs inputs_of_fixture(const std::filesystem::path& path, DType dtype) {
  const TensorFile file = read_safetensors(path);
  const auto text = file.metadata.find("config");
  check(text != file.metadata.end(), path.string(), ": no \"config\" in its metadata; is it a fixture?");
  const Json config = parse_json(text->second, path.string() + ": config");
  check(!config.contains("part"), path.string(), ": is the fixture of a part; a whole model is inspected");
  PassInputs pass{.model = build(config, {.dtype = dtype}), .training = file.metadata.contains("mode")};
  NamedTensors parameters;
  for (const auto& [name, tensor] : file.tensors)
    if (name.starts_with(parameter_prefix))
      parameters.emplace_back(name.substr(parameter_prefix.size()), tensor);
    else if (!name.starts_with("grad") && !name.starts_with("after."))
      pass.inputs[name] = is_float(tensor.dtype()) ? tensor.to(dtype) : tensor;
  pass.model.parameters.load(parameters, path.string());
  return pass;
}

}  // namespace tessera
