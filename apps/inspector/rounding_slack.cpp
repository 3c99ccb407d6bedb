#include "apps/inspector/rounding_slack.h"

#include <algorithm>
#include <cmath>

namespace tessera {

namespace {

constexpr double unit = 0x1p-50;  // eight times half the distance of two doubles at 1

double count(int64_t n) { return static_cast<double>(n); }

// Of the rows of x [..., D]: the largest 1 / (standard deviation).
double largest_rstd(const Tensor& x) {
  const int64_t width = x.dim(-1), rows = x.elements() / std::max<int64_t>(1, width);
  const double* data = x.data<double>();
  double most = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < width; ++j) sum += data[r * width + j];
    const double mean = sum / count(width);
    for (int64_t j = 0; j < width; ++j) squares += std::pow(data[r * width + j] - mean, 2);
    most = std::max(most, 1 / std::sqrt(squares / count(width) + 1e-12));
  }
  return most;
}

// Ops that both computations do by the same single operation on each cell, or by none.
bool is_exact(std::string_view op) {
  constexpr std::string_view ops[] = {"add",       "subtract",     "multiply",      "scale",
                                      "permute",   "broadcast_to", "concat",        "slice",
                                      "drop_path", "add_scalar",   "mask_diagonal", "relu"};
  return std::ranges::find(ops, op) != std::end(ops);
}

}  // namespace

double largest_size(const Tensor& x) {
  if (!x.defined() || x.dtype() != DType::f64) return 0;
  double most = 0;
  const double* data = x.data<double>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double size = std::abs(data[i]);
    if (size > most && std::isfinite(size)) most = size;
  }
  return most;
}

double slack_of_output(std::string_view op, const std::vector<Tensor>& operands, const Tensor& y) {
  if (is_exact(op)) return 0;
  const double a = largest_size(operands[0]), b = operands.size() > 1 ? largest_size(operands[1]) : 0;
  if (op == "linear") return unit * (count(operands[0].dim(-1)) * a * b + largest_size(operands[2]));
  if (op == "matmul")  // the axis that is summed is the one that y has not
    return unit * a * b * std::sqrt(count(operands[0].elements()) * count(operands[1].elements()));
  if (op == "layer_norm") return 4 * unit * (largest_rstd(operands[0]) * a * b + largest_size(y));
  if (op == "softmax") return 0;  // each cell's error is in proportion to it
  return unit * std::max({a, b, largest_size(y)});
}

double slack_of_gradient(std::string_view op, const std::vector<Tensor>& operands, size_t k, const Tensor& y,
                         const Tensor& dy) {
  const double most = largest_size(dy), width = count(y.rank() == 0 ? 1 : y.dim(-1));
  const double rows = count(y.elements()) / std::max(1.0, width);
  const double a = largest_size(operands[0]), b = operands.size() > 1 ? largest_size(operands[1]) : 0;
  const double folded = count(y.elements()) / std::max(1.0, count(operands[k].elements()));
  if (op == "linear") return unit * most * (k == 0 ? width * b : rows * (k == 1 ? a : 1));
  if (op == "matmul") return unit * most * (k == 0 ? width * b : count(y.dim(-2)) * a);
  if (op == "layer_norm" && k == 0) return unit * 8 * most * b * largest_rstd(operands[0]);
  if (op == "layer_norm") return unit * most * rows * (k == 1 ? std::sqrt(width) : 1);
  if (op == "multiply") return folded <= 1 ? 0 : unit * folded * most * (k == 0 ? b : a);
  if (is_exact(op)) return folded <= 1 ? 0 : unit * folded * most;
  return unit * most * std::max(1.0, folded);
}

}  // namespace tessera
