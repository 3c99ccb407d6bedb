#include "models/check/fixture.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/autograd/tape.h"
#include "engine/core/error_place.h"
#include "engine/io/safetensors.h"
#include "models/check/fixture_parts.h"
#include "models/model.h"

namespace tessera {

namespace {

using Tensors = TensorMap;

const std::string parameter_prefix = "param.", gradient_prefix = "grad.", after_prefix = "after.";

const Tensor& needed(const Tensors& stored, const std::string& name, const std::string& path) {
  const auto found = stored.find(name);
  if (found == stored.end()) fail(path, ": no tensor '", name, "', which a fixture of this kind holds");
  return found->second;
}

NamedTensors parameters_of(const Tensors& stored) {
  NamedTensors parameters;
  for (const auto& [name, tensor] : stored)
    if (name.starts_with(parameter_prefix))
      parameters.emplace_back(name.substr(parameter_prefix.size()), tensor);
  return parameters;
}

void collect_gradients(const Parameters& parameters, Tensors& computed) {
  for (const Parameter& p : parameters) {
    if (!p.trainable) continue;
    const Tensor grad = p.value.grad();
    computed[gradient_prefix + p.name] =
        grad.defined() ? grad : Tensor::zeros(p.value.shape(), p.value.dtype());
  }
}

// The type and device in which a fixture is computed.
struct Precision {
  DType dtype;
  Device device;
};

// The file's inputs, which are neither parameters nor computed from them; floating-point ones are converted.
Tensors inputs_of(const Tensors& stored, Precision at) {
  Tensors inputs;
  for (const auto& [name, tensor] : stored)
    if (!name.starts_with(parameter_prefix) && !name.starts_with("grad") && !name.starts_with(after_prefix))
      inputs[name] = (is_float(tensor.dtype()) ? tensor.to(at.dtype) : tensor).to(at.device);
  return inputs;
}

// Computes a model's outputs and the gradients of its parameters and input; in training also the buffers
// after the step.
Tensors run_model(const Json& config, const Tensors& stored, const std::string& path, Precision at,
                  bool training) {
  const Model model = build(config, {.dtype = at.dtype, .device = at.device});
  model.parameters.load(parameters_of(stored), path);
  Tensors inputs = inputs_of(stored, at);
  const Tensor input = needed(inputs, "input", path).clone().require_grad();
  inputs["input"] = input;
  Tape tape;
  Pass pass{.training = training, .random = Random(0), .drop = false};
  Tensors computed = model.evaluate(inputs, pass);
  tape.backward(computed.at("loss"));
  computed["grad_input"] = input.grad();
  collect_gradients(model.parameters, computed);
  for (const Parameter& p : model.parameters)
    if (training && !p.trainable && stored.contains(after_prefix + p.name))
      computed[after_prefix + p.name] = p.value;
  return computed;
}

// Computes a part's outputs, and, if one output is weighted by the file's `grad_output`, its gradients.
Tensors run_part(const Json& config, const Tensors& stored, const std::string& path, Precision at) {
  const Part part = build_part(config, at.dtype, at.device);
  part.parameters.load(parameters_of(stored), path);
  Tensors inputs = inputs_of(stored, at);
  Tensor input;
  if (inputs.contains("input")) input = inputs["input"] = inputs["input"].clone().require_grad();
  Tape tape;
  Tensors computed = part.outputs(inputs);
  if (part.weighted_output.empty()) return computed;
  tape.backward(computed.at(part.weighted_output),
                needed(stored, "grad_output", path).to(at.dtype).to(at.device));
  if (input.defined()) computed["grad_input"] = input.grad();
  collect_gradients(part.parameters, computed);
  return computed;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::isnan(value) ? value : std::max(most, std::abs(value));
  return most;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= most))
      most = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return most;
}

double largest_gradient(const Tensors& stored) {
  double most = 0;
  for (const auto& [name, tensor] : stored)
    if (name.starts_with("grad") && name != "grad_output") most = std::max(most, largest(tensor.values()));
  return most;
}

Parity compare(const Tensors& computed, const Tensors& stored, DType dtype, const std::string& path) {
  const double floor = (dtype == DType::f64 ? 1e-8 : 1e-6) * largest_gradient(stored);
  Parity parity{0, "all", 0};
  for (const auto& [name, a] : computed) {
    const Tensor& b = needed(stored, name, path);
    check(a.shape() == b.shape(), path, ": ", name, " is ", b.shape(), " in the file, the engine gives ",
          a.shape());
    ++parity.compared;
    const std::vector<double> reference = b.values();
    const double difference = largest_difference(a.values(), reference);
    if (difference == 0 || (name.starts_with("grad") && difference <= floor)) continue;
    const double error = std::isinf(difference) ? difference  // dividing by a NaN of the file would hide it
                                                : difference / std::max(largest(reference), 1e-30);
    if (!(error <= parity.error)) parity = {error, name, parity.compared};
  }
  return parity;
}

// Fails if the file holds a tensor that is neither an input nor computed, so that a forgotten gradient cannot
// pass.
void check_complete(const Tensors& computed, const Tensors& stored, const std::string& path) {
  static const std::set<std::string> inputs{"input",     "target", "grad_output", "aux_target",
                                            "box",       "t",      "y",           "noise",
                                            "predicted", "values", "crop",        "indices"};
  for (const auto& [name, tensor] : stored)
    check(computed.contains(name) || inputs.contains(name) || name.starts_with(parameter_prefix), path,
          ": holds '", name, "', which the engine does not compute for a fixture of this kind");
}

}  // namespace

double parity_tolerance(DType dtype) { return dtype == DType::f64 ? 1e-6 : 1e-4; }

Parity check_fixture(const std::string& path, DType dtype, Device device) {
  check(dtype == DType::f32 || dtype == DType::f64, "parity: runs in f32 or f64, not ", dtype);
  const TensorFile file = read_safetensors(path);
  const auto text = file.metadata.find("config");
  check(text != file.metadata.end(), path, ": no \"config\" in its metadata; is it a fixture?");
  const Json config = parse_json(text->second, path + ": config");
  const auto mode = file.metadata.find("mode");
  const bool training = mode != file.metadata.end();
  check(!training || mode->second == "train", path, ": unknown mode '", training ? mode->second : "", "'");
  const Tensors stored(file.tensors.begin(), file.tensors.end());
  const bool is_part = config.is_object() && config.contains("part");
  const Tensors computed = with_place(path, [&] {
    return is_part ? run_part(config, stored, path, {dtype, device})
                   : run_model(config, stored, path, {dtype, device}, training);
  });
  check_complete(computed, stored, path);
  return compare(computed, stored, dtype, path);
}

}  // namespace tessera
