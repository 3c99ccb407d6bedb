#include "apps/inspector/recomputed.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace tessera {

namespace {

// The ops of predict.js.
constexpr std::string_view ops[] = {"linear",    "matmul",     "softmax",      "permute",       "slice",
                                    "concat",    "layer_norm", "broadcast_to", "mask_diagonal", "add",
                                    "drop_path", "subtract",   "multiply",     "scale",         "add_scalar",
                                    "relu",      "gelu",       "silu",         "sigmoid"};

// Smaller tensors cost no more when they are stored. NaNs have more than one form.
bool may_be_left_out(const Tensor& x) {
  if (x.dtype() != DType::f32 || x.elements() <= 16) return false;
  const std::span<const float> cells(x.data<float>(), static_cast<size_t>(x.elements()));
  return std::ranges::none_of(cells, [](float value) { return std::isnan(value); });
}

bool has_number(const PassRecord::Step& step, std::string_view name, double number) {
  return std::ranges::any_of(step.attributes, [&](const Attribute& attribute) {
    const double* value = std::get_if<double>(&attribute.value);
    return attribute.name == name && value && *value == number;
  });
}

bool has_text(const PassRecord::Step& step, std::string_view name, std::string_view text) {
  return std::ranges::any_of(step.attributes, [&](const Attribute& attribute) {
    const std::string* value = std::get_if<std::string>(&attribute.value);
    return attribute.name == name && value && *value == text;
  });
}

}  // namespace

Recomputed::Recomputed(const PassRecord& record, const Roundings& roundings)
    : record_(record),
      roundings_(roundings),
      made_(record.values().size()),
      passed_back_(record.values().size(), true) {
  for (const PassRecord::Step& step : record.steps()) {
    const bool covered = covers(step);
    made_[step.output] = covered;
    for (const size_t i : step.inputs)
      if (i != PassRecord::left_out && record.values()[step.output].gradient.defined() && !covered)
        passed_back_[i] = false;
  }
}

bool Recomputed::covers(const PassRecord::Step& step) const {
  const std::string_view op = step.op->name;
  if (std::ranges::find(ops, op) == std::end(ops)) return false;
  if (op == "drop_path" && !has_number(step, "p", 0)) return false;
  if (op == "linear" && !has_text(step, "f", "none")) return false;
  return std::ranges::all_of(step.inputs, [&](size_t i) {
    return i == PassRecord::left_out || record_.values()[i].value.dtype() == DType::f32;
  });
}

const Rounding* Recomputed::value(size_t i) const {
  const bool recomputes = i < roundings_.values.size() && made_[i] && roundings_.values[i].known &&
                          may_be_left_out(record_.values()[i].value);
  return recomputes ? &roundings_.values[i] : nullptr;
}

const Rounding* Recomputed::gradient(size_t i) const {
  const bool recomputes = i < roundings_.gradients.size() && passed_back_[i] &&
                          roundings_.gradients[i].known && may_be_left_out(record_.values()[i].gradient);
  return recomputes ? &roundings_.gradients[i] : nullptr;
}

}  // namespace tessera
