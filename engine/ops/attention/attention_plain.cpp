// Attention as it is defined, one recorded op a line. The fast kernels must equal it in value and gradient.

#include "engine/autograd/tape.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"

namespace tessera {

Tensor split_heads(const Tensor& x, int64_t heads) {
  return permute(x.reshape({x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Tensor split_heads(const Tensor& x, int64_t heads, int64_t part, int64_t parts) {
  const int64_t inner = x.dim(2) / parts;
  if (ops_are_seen()) return split_heads(slice(x, 2, part * inner, inner), heads);
  return permuted_entry(x.reshape({x.dim(0), x.dim(1), parts, heads, inner / heads}), 2, part, {0, 2, 1, 3});
}

Tensor merge_heads(const Tensor& x) {
  return permute(x, {0, 2, 1, 3}).reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

namespace {

// s [B, H, N, N] + mask [W, N, N], image b with mask b % W.
Tensor add_mask(const Tensor& s, const Tensor& mask) {
  const int64_t masks = mask.dim(0), times = s.dim(0) / masks, n = s.dim(2);
  const Tensor repeated = broadcast_to(mask.reshape({1, masks, n, n}), {times, masks, n, n});
  return add(s, repeated.reshape({times * masks, 1, n, n}));
}

}  // namespace

Tensor apply_terms(Tensor s, int64_t heads, const ScoreTerms& t) {
  s = t.learned_scale.defined() ? multiply(s, t.learned_scale.reshape({heads, 1, 1})) : scale(s, t.scale);
  if (t.prior.defined()) s = multiply(s, t.prior);
  if (t.bias.defined()) s = add(s, t.bias);
  if (t.slopes.defined()) s = add(s, fixed_decay(t.slopes, t.grid, t.prefix));
  if (t.gates.defined()) {
    const Tensor decay = content_decay(t.gates, t.grid, t.prefix, t.alpha, t.use_distance);
    name_value(decay, "gate.out");  // what the module of the gates is for
    s = add(s, decay);
  }
  if (t.mask.defined()) s = add_mask(s, t.mask);
  if (t.mask_diagonal) s = mask_diagonal(s);
  return s;
}

namespace {

// q, k, v [B, H, N, d] -> [B, N, H d]
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads, const ScoreTerms& terms) {
  name_value(q, "q");
  name_value(k, "k");
  name_value(v, "v");
  const Tensor s = apply_terms(matmul(q, k, false, true), heads, terms);
  name_value(s, "scores");
  const Tensor p = softmax(s);
  name_value(p, "probabilities");
  return merge_heads(matmul(p, v));
}

}  // namespace

Tensor attention_plain(const Tensor& qkv, int64_t heads, const ScoreTerms& terms) {
  const AttentionSizes size = attention_sizes(qkv, heads, terms);
  const Tensor parts =
      permute(qkv.reshape({size.images, size.keys, 3, heads, size.head_dim}), {2, 0, 3, 1, 4});
  const auto part = [&](int64_t i) {
    return slice(parts, 0, i, 1).reshape({size.images, heads, size.keys, size.head_dim});
  };
  return attend(part(0), part(1), part(2), heads, terms);
}

Tensor attention_plain(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                       const ScoreTerms& terms) {
  attention_sizes(q, k, v, heads, terms);
  return attend(split_heads(q, heads), split_heads(k, heads), split_heads(v, heads), heads, terms);
}

// The other tokens get queries of 0, because the terms are those of all tokens, and their rows are left out.
Tensor attention_of_first_plain(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms) {
  const AttentionSizes size = sizes_of_first(q, kv, heads, terms);
  const Shape others = q.shape().with(1, size.keys - size.queries);
  const Tensor all = concat({q, Tensor::zeros(others, q.dtype(), q.device())}, 1);
  const auto part = [&](int64_t i) { return slice(kv, 2, i * q.dim(2), q.dim(2)); };
  return slice(attention_plain(all, part(0), part(1), heads, terms), 1, 0, size.queries);
}

}  // namespace tessera
