#include "models/parts/block.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
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

Tensor Block::after_attention(const Tensor& x, const Tensor& attended, const BlockDraws& draws) const {
  const auto scaled = [&](const Tensor& branch) {
    return branch_scale == 1 ? branch : scale(branch, branch_scale);
  };
  const auto [y, normed] = norm2.of_residual(x, scaled(attended), draws.attention, draws.mlp.images);
  return tessera::drop_path(y, scaled(mlp(normed)), draws.mlp);
}

Tensor Block::operator()(const Tensor& x, const Tensor& omega, Pass& pass) const {
  const ModuleScope here(path);
  const BlockDraws draws(x, drop_path, pass);
  return after_attention(x, attn(norm1(x, draws.attention.images), omega), draws);
}

// The slice comes before the norm, so that in the backward pass the norm writes all of dx, to which the
// slice's row is added.
Tensor Block::of_first(const Tensor& x, const Tensor& omega, Pass& pass) const {
  const ModuleScope here(path);
  const Tensor first = first_token(x);
  const BlockDraws draws(x, drop_path, pass);
  return after_attention(first, attn.of_first(norm1(x, draws.attention.images), omega), draws);
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

PathDraw draw_path(double rate, Pass& pass) {
  if (!pass.drops() || rate == 0) return {};
  return {rate, pass.key()};
}

BlockDraws::BlockDraws(const Tensor& x, double rate, Pass& pass)
    : attention(draw_path(rate, pass)), mlp(draw_path(rate, pass)) {
  // A dry run measures the memory of a step, which is largest where no image drops a branch.
  if (!pass.answer_only || x.device() != Device::cpu || DryRun::active()) return;
  for (PathDraw* draw : {&attention, &mlp}) draw->images = kept_images(x.dim(0), draw->p, draw->key);
}

}  // namespace tessera
