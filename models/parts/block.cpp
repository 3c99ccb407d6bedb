#include "models/parts/block.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/ops/dropout.h"
#include "engine/ops/elementwise.h"
#include "models/parts/class_token.h"

namespace tessera {

Block::Block(const Scope& scope, int64_t dim, const AttentionOptions& attention, Grid grid, int64_t prefix,
             int64_t hidden, double drop_rate, double eps)
    : norm1(scope / "norm1", dim, eps),
      attn(scope / "attn", dim, attention, grid, prefix),
      norm2(scope / "norm2", dim, eps),
      mlp(scope / "mlp", dim, hidden),
      drop_path(drop_rate),
      path(scope.path()) {}

Tensor Block::after_attention(const Tensor& x, const Tensor& attended, Pass& pass) const {
  const auto scaled = [&](const Tensor& branch) {
    return branch_scale == 1 ? branch : scale(branch, branch_scale);
  };
  const auto [y, normed] = residual(x, scaled(attended), drop_path, pass, norm2);
  return residual(y, scaled(mlp(normed)), drop_path, pass);
}

Tensor Block::operator()(const Tensor& x, const Tensor& omega, Pass& pass) const {
  const ModuleScope here(path);
  return after_attention(x, attn(norm1(x), omega), pass);
}

// The slice comes before the norm, so that in the backward pass the norm writes all of dx, to which the
// slice's row is added.
Tensor Block::of_first(const Tensor& x, const Tensor& omega, Pass& pass) const {
  const ModuleScope here(path);
  const Tensor first = first_token(x);
  return after_attention(first, attn.of_first(norm1(x), omega), pass);
}

bool leaves_out_tokens(const Tensor& x, const Pass& pass) {
  return pass.answer_only && x.device() == Device::cpu;
}

Tensor class_token_after(std::span<const Block> blocks, Tensor x, const Tensor& omega, Pass& pass) {
  for (const Block& block : blocks)
    x = &block == &blocks.back() && leaves_out_tokens(x, pass) ? block.of_first(x, omega, pass)
                                                               : block(x, omega, pass);
  return class_token_of(x);
}

double read_rate(Fields& fields, const char* key, double otherwise) {
  const double rate = fields.get(key, otherwise, Range::at_least(0));
  if (rate >= 1) fields.fail_at(key, "is ", rate, ", a probability below 1 is wanted");
  return rate;
}

std::vector<double> drop_rates(Fields& fields, int64_t blocks, const char* default_rule) {
  const double rate = read_rate(fields, "drop_path");
  const std::string rule = fields.choice("drop_path_rule", {"constant", "linear"}, default_rule);
  std::vector<double> rates(static_cast<size_t>(blocks), rate);
  if (rule == "linear")
    for (size_t i = 0; i < rates.size(); ++i)
      rates[i] = rate * static_cast<double>(i) / static_cast<double>(std::max<int64_t>(blocks - 1, 1));
  return rates;
}

Tensor residual(const Tensor& x, const Tensor& branch, double rate, Pass& pass) {
  const bool drops = pass.drops() && rate > 0;
  return drop_path(x, branch, drops ? rate : 0.0, drops ? pass.key() : 0);
}

NormedSum residual(const Tensor& x, const Tensor& branch, double rate, Pass& pass, const LayerNorm& norm) {
  const bool drops = pass.drops() && rate > 0;
  return norm.of_residual(x, branch, drops ? rate : 0.0, drops ? pass.key() : 0);
}

}  // namespace tessera
