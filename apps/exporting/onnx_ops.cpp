#include "apps/exporting/onnx_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "apps/exporting/onnx_windows.h"
#include "engine/core/error.h"
#include "engine/ops/activation_table.h"

namespace tessera {

namespace {

using Graph = OnnxGraph;
using Step = OnnxStep;

template <class T> const T& attribute_of(const OnnxStep& step, const std::string& name) {
  const auto found =
      std::ranges::find_if(step.attributes, [&](const Attribute& each) { return each.name == name; });
  check(found != step.attributes.end(), "onnx: the record of ", step.op, " says nothing of its ", name);
  return std::get<T>(found->value);
}

// ---- elements ----

std::string activation(Graph& g, const std::string& name, const std::string& x) {
  const auto half_times = [&](const std::string& a, const std::string& b) {
    return g.node("Mul", {g.node("Mul", {a, b}), g.number(0.5)});
  };
  if (name == "none") return x;
  if (name == "relu") return g.node("Relu", {x});
  if (name == "sigmoid") return g.node("Sigmoid", {x});
  if (name == "tanh") return g.node("Tanh", {x});
  if (name == "silu") return g.node("Mul", {x, g.node("Sigmoid", {x})});
  if (name == "log_sigmoid") return g.node("Neg", {g.node("Softplus", {g.node("Neg", {x})})});
  if (name == "gelu") {  // as PyTorch writes it, which runtimes know
    const std::string error = g.node("Erf", {g.node("Div", {x, g.number(std::numbers::sqrt2)})});
    return half_times(x, g.node("Add", {error, g.number(1)}));
  }
  if (name == "gelu_tanh") {
    const std::string cube = g.node("Mul", {g.node("Mul", {x, x}), x});
    const std::string inside = g.node("Add", {x, g.node("Mul", {cube, g.number(0.044715)})});
    const std::string u = g.node("Mul", {inside, g.number(std::sqrt(2 / std::numbers::pi))});
    return half_times(x, g.node("Add", {g.node("Tanh", {u}), g.number(1)}));
  }
  fail("onnx: no operators for the activation ", name);
}

template <const char* op> std::string same(Graph& g, const Step& s) { return g.node(op, s.inputs); }

std::string activate(Graph& g, const Step& s) { return activation(g, s.op, s.inputs[0]); }
std::string cast(Graph&, const Step& s) { return s.inputs[0]; }  // every value is f32
std::string square(Graph& g, const Step& s) { return g.node("Mul", {s.inputs[0], s.inputs[0]}); }
std::string scale(Graph& g, const Step& s) { return g.node("Mul", {s.inputs[0], g.number(s.number("c"))}); }
std::string add_scalar(Graph& g, const Step& s) {
  return g.node("Add", {s.inputs[0], g.number(s.number("c"))});
}

// In evaluation nothing is dropped: what is left of both is the sum and the value itself.
std::string dropped(Graph& g, const Step& s) {
  check(s.number("p") == 0, "onnx: ", s.op, " drops with the probability ", s.number("p"),
        "; a pass in evaluation is exported");
  return s.op == "drop_path" ? g.node("Add", s.inputs) : s.inputs[0];
}

// ---- products ----

std::vector<int64_t> with_last_two_exchanged(size_t rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

std::string matmul(Graph& g, const Step& s) {
  std::array<std::string, 2> factors{s.inputs[0], s.inputs[1]};
  const std::array transposed{s.number("transpose_a") != 0, s.number("transpose_b") != 0};
  for (size_t i = 0; i < 2; ++i)
    if (transposed[i]) factors[i] = g.permute(factors[i], with_last_two_exchanged(s.shapes[i].size()));
  return g.node("MatMul", {factors[0], factors[1]});
}

std::string linear(Graph& g, const Step& s) {
  std::string y = g.node("MatMul", {s.inputs[0], g.permute(s.inputs[1], {1, 0})});
  if (s.has(2)) y = g.node("Add", {y, s.inputs[2]});
  return activation(g, s.text("f"), y);
}

// ---- rows ----

std::string layer_norm(Graph& g, const Step& s) {
  return g.node("LayerNormalization", s.inputs,
                {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(s.number("eps"))}});
}

std::string batch_norm(Graph& g, const Step& s) { return activation(g, s.text("f"), onnx_batch_norm(g, s)); }

std::string softmax(Graph& g, const Step& s) {
  return g.node(s.op == "softmax" ? "Softmax" : "LogSoftmax", s.inputs, {{"axis", int64_t{-1}}});
}

std::string sum(Graph& g, const Step& s) {
  const auto& axes = s.integers("axes");
  const std::vector<OnnxAttribute> keep{{"keepdims", int64_t{1}}};
  const std::string y = s.op == "sum"
                            ? g.node("ReduceSum", {s.inputs[0], g.integers(axes)}, keep)
                            : g.node("ReduceMean", {s.inputs[0]}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  OnnxShape kept = s.shapes[0];
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = {};
  return g.reshape(y, kept, s.out);
}

std::string max(Graph& g, const Step& s) {
  const int64_t axis = s.whole("axis");
  OnnxShape kept = s.shapes[0];
  kept[static_cast<size_t>(axis)] = {};
  const std::string y =
      g.node("ReduceMax", {s.inputs[0]}, {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}});
  return g.reshape(y, kept, s.out);
}

// ---- moves ----

std::string broadcast_to(Graph& g, const Step& s) {
  return s.shapes[0] == s.out ? s.inputs[0] : g.node("Expand", {s.inputs[0], g.sizes(s.out)});
}

std::string permute(Graph& g, const Step& s) { return g.permute(s.inputs[0], s.integers("order")); }

std::string concat(Graph& g, const Step& s) {
  return g.node("Concat", s.inputs, {{"axis", s.whole("axis")}});
}

std::string slice(Graph& g, const Step& s) {
  const int64_t axis = s.whole("axis");
  check(!s.out[static_cast<size_t>(axis)].per_image, "onnx: a slice of the batch depends on its size");
  return g.slice(s.inputs[0], axis, s.whole("first"), s.whole("count"));
}

std::string take(Graph& g, const Step& s) {
  return g.node("Gather", {s.inputs[0], g.constant(s.tensor("index"))}, {{"axis", s.whole("axis")}});
}

std::string gather(Graph& g, const Step& s) {  // the index of an input of the graph comes as an operand
  const std::string index = s.has(1) ? s.inputs[1] : g.constant(s.tensor("index"));
  return g.node("Gather", {s.inputs[0], index}, {{"axis", int64_t{0}}});
}

// ---- attention ----

// y_ij = -|alpha d_ij / 2 (g_i + g_j)|, the gates [B, N, H] -> [B, H, N, N]
std::string content_decay(Graph& g, const Step& s) {
  const OnnxAxis images = s.shapes[0][0], tokens = s.shapes[0][1], heads = s.shapes[0][2];
  const std::string gates = g.permute(s.inputs[0], {0, 2, 1});
  const OnnxShape rows{images, heads, tokens};
  const std::string both = g.node("Add", {g.reshape(gates, rows, {images, heads, tokens, {1}}),
                                          g.reshape(gates, rows, {images, heads, {1}, tokens})});
  std::vector<double> factors = s.tensor("distance").values();
  for (double& each : factors) each *= s.number("alpha") / 2;
  const Tensor factor = Tensor::from(factors, s.tensor("distance").shape());
  return g.node("Neg", {g.node("Abs", {g.node("Mul", {both, g.constant(factor)})})});
}

std::string mask_diagonal(Graph& g, const Step& s) {
  const int64_t tokens = s.out.back().size;
  std::vector<bool> diagonal(static_cast<size_t>(tokens * tokens));
  for (int64_t i = 0; i < tokens; ++i) diagonal[static_cast<size_t>(i * (tokens + 1))] = true;
  return g.node("Where", {g.truths(diagonal, {tokens, tokens}), g.number(s.number("value")), s.inputs[0]});
}

// Each pair of channels (2 k, 2 k + 1) of a head turned by its angle. [..., N, H d]
std::string rotary(Graph& g, const Step& s) {
  const Tensor& turns = s.tensor("turns");  // [N, d / 2, 2], cosines and sines
  const int64_t tokens = turns.dim(0), pairs = turns.dim(1), heads = s.out.back().size / (2 * pairs);
  OnnxShape split = s.out;
  split.pop_back();
  for (const int64_t size : {heads, pairs, int64_t{2}}) split.push_back({size});
  const std::string x = g.reshape(s.inputs[0], s.out, split);
  const auto last = static_cast<int64_t>(split.size()) - 1;
  const std::vector<double> values = turns.values();
  const auto part = [&](size_t which) {
    std::vector<double> chosen;
    for (size_t i = which; i < values.size(); i += 2) chosen.push_back(values[i]);
    return g.constant(Tensor::from(chosen, {tokens, 1, pairs, 1}));
  };
  const std::string a = g.slice(x, last, 0, 1), b = g.slice(x, last, 1, 1), cosine = part(0), sine = part(1);
  const std::string first = g.node("Sub", {g.node("Mul", {a, cosine}), g.node("Mul", {b, sine})});
  const std::string second = g.node("Add", {g.node("Mul", {a, sine}), g.node("Mul", {b, cosine})});
  return g.reshape(g.node("Concat", {first, second}, {{"axis", last}}), split, s.out);
}

constexpr char add_[] = "Add", sub_[] = "Sub", mul_[] = "Mul", div_[] = "Div", exp_[] = "Exp", log_[] = "Log",
               sqrt_[] = "Sqrt", abs_[] = "Abs";

using Writer = std::string (*)(Graph&, const Step&);

const std::map<std::string, Writer>& writers() {
  // clang-format off
  static const std::map<std::string, Writer> all{
      {"add", same<add_>}, {"subtract", same<sub_>}, {"multiply", same<mul_>}, {"divide", same<div_>},
      {"exp", same<exp_>}, {"log", same<log_>}, {"sqrt", same<sqrt_>}, {"absolute", same<abs_>},
      {"scale", scale}, {"add_scalar", add_scalar}, {"cast", cast}, {"square", square},
      {"dropout", dropped}, {"drop_path", dropped},
#define TESSERA_ROW(name, Struct, forward, backward) {#name, activate},
      TESSERA_ACTIVATIONS(TESSERA_ROW)
#undef TESSERA_ROW
      {"sum", sum}, {"mean", sum}, {"max", max}, {"broadcast_to", broadcast_to}, {"permute", permute},
      {"concat", concat}, {"slice", slice}, {"gather", gather}, {"take", take}, {"resample", onnx_resample},
      {"rotary", rotary}, {"matmul", matmul}, {"linear", linear}, {"layer_norm", layer_norm},
      {"batch_norm", batch_norm}, {"conv2d", onnx_conv}, {"depthwise_conv2d", onnx_conv},
      {"unfold", onnx_unfold}, {"softmax", softmax}, {"log_softmax", softmax}, {"patches", onnx_patches},
      {"shifted_copies", onnx_shifted_copies}, {"shifted_patches", onnx_patches},
      {"content_decay", content_decay}, {"mask_diagonal", mask_diagonal}};
  // clang-format on
  return all;
}

}  // namespace

double OnnxStep::number(const std::string& name) const { return attribute_of<double>(*this, name); }
const std::vector<int64_t>& OnnxStep::integers(const std::string& name) const {
  return attribute_of<std::vector<int64_t>>(*this, name);
}
const std::string& OnnxStep::text(const std::string& name) const {
  return attribute_of<std::string>(*this, name);
}
const Tensor& OnnxStep::tensor(const std::string& name) const { return attribute_of<Tensor>(*this, name); }

bool has_onnx(const std::string& op) { return writers().contains(op); }

std::string add_onnx(OnnxGraph& graph, const OnnxStep& step) {
  check(has_onnx(step.op), "onnx: ", step.op, " has no operators of its own; only training runs it");
  return writers().at(step.op)(graph, step);
}

}  // namespace tessera
