// Every check of attention's inputs.

#include "engine/core/error.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

void check_type(const Tensor& x, const char* what, const Tensor& q) {
  check(x.dtype() == q.dtype(), "attention: ", what, " is ", x.dtype(), ", the queries are ", q.dtype());
  check_same_device("attention", {q, x});
}

void check_term(const Tensor& term, const char* what, const Shape& wanted, const Tensor& q) {
  if (!term.defined()) return;
  check(term.shape() == wanted, "attention: ", what, " ", term.shape(), " for ", wanted);
  check_type(term, what, q);
}

void check_grid(const ScoreTerms& terms, int64_t tokens) {
  const auto [h, w] = terms.grid;
  check(h > 0 && w > 0 && terms.prefix >= 0 && terms.prefix + h * w == tokens,
        "attention: decay on a grid of ", h, " x ", w, " after a prefix of ", terms.prefix, " has ",
        terms.prefix + h * w, " tokens, the input ", tokens);
}

// The terms that depend on a pair of tokens. With `of_first` the queries may be those of the first tokens
// alone.
void check_pairs(const ScoreTerms& t, const AttentionSizes& s, const Tensor& q, bool of_first) {
  const char* present = t.prior.defined()    ? "a prior"
                        : t.bias.defined()   ? "a bias"
                        : t.slopes.defined() ? "a decay"
                        : t.gates.defined()  ? "a decay"
                        : t.mask.defined()   ? "a mask"
                        : t.mask_diagonal    ? "the diagonal mask"
                                             : nullptr;
  if (!present) return;
  check(s.queries == s.keys || of_first, "attention: ", present, " needs as many queries as keys, not ",
        s.queries, " and ", s.keys);
  const int64_t n = s.keys;
  const bool shared = t.prior.defined() && t.prior.rank() == 3 && t.prior.dim(0) == 1;
  check_term(t.prior, "prior", {shared ? 1 : s.heads, n, n}, q);
  check_term(t.bias, "bias", {s.heads, n, n}, q);
  check_term(t.slopes, "slopes", {s.heads}, q);
  check_term(t.gates, "gates", {s.images, n, s.heads}, q);
  if (t.slopes.defined() || t.gates.defined()) check_grid(t, n);
  if (t.mask.defined()) {
    check(t.mask.rank() == 3 && t.mask.dim(0) > 0, "attention: mask ", t.mask.shape(),
          " is not [windows, N, N]");
    check_term(t.mask, "mask", {t.mask.dim(0), n, n}, q);
    check(s.images % t.mask.dim(0) == 0, "attention: ", s.images, " images are no multiple of the ",
          t.mask.dim(0), " windows of mask ", t.mask.shape());
  }
  check(!t.mask_diagonal || n != 1,
        "attention: under the diagonal mask a single token has nothing to attend to; leave mask_diagonal off "
        "here");
}

void check_heads(const Tensor& x, const char* what, int64_t heads, int64_t parts) {
  check(heads > 0, "attention: ", heads, " heads; at least 1 is needed");
  check(x.rank() == 3, "attention: ", what, " ", x.shape(), " is not [B, N, D]");
  check(is_float(x.dtype()), "attention: ", what, " is ", x.dtype(), ", not floating");
  check(x.dim(2) > 0 && x.dim(2) % (parts * heads) == 0, "attention: ", what, " ", x.shape(), " has ",
        x.dim(2), " columns, which do not divide into ", parts == 3 ? "q, k, v of " : "", heads, " heads");
}

AttentionSizes checked(const AttentionSizes& sizes, const ScoreTerms& terms, const Tensor& q,
                       bool of_first = false) {
  check(sizes.keys > 0 || sizes.queries == 0, "attention: ", sizes.queries,
        " queries have no key to attend to");
  check_term(terms.learned_scale, "learned_scale", {sizes.heads}, q);
  check_pairs(terms, sizes, q, of_first);
  return sizes;
}

}  // namespace

AttentionSizes attention_sizes(const Tensor& qkv, int64_t heads, const ScoreTerms& terms) {
  check_heads(qkv, "qkv", heads, 3);
  return checked({qkv.dim(0), heads, qkv.dim(1), qkv.dim(1), qkv.dim(2) / (3 * heads)}, terms, qkv);
}

AttentionSizes attention_sizes(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                               const ScoreTerms& terms) {
  check_heads(q, "q", heads, 1);
  const Shape wanted{q.dim(0), k.rank() == 3 ? k.dim(1) : 0, q.dim(2)};
  check(k.shape() == wanted && v.shape() == wanted, "attention: q ", q.shape(), " takes k and v [", q.dim(0),
        ", keys, ", q.dim(2), "], not ", k.shape(), " and ", v.shape());
  check_type(k, "k", q);
  check_type(v, "v", q);
  return checked({q.dim(0), heads, q.dim(1), k.dim(1), q.dim(2) / heads}, terms, q);
}

AttentionSizes sizes_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms) {
  check_heads(q, "q", heads, 1);
  const int64_t tokens = kv.rank() == 3 ? kv.dim(1) : 0;
  check(kv.shape() == Shape{q.dim(0), tokens, 2 * q.dim(2)} && q.dim(1) <= tokens, "attention: q ", q.shape(),
        " of the first tokens takes kv [", q.dim(0), ", tokens, ", 2 * q.dim(2), "] of ", q.dim(1),
        " tokens or more, not ", kv.shape());
  check_type(kv, "kv", q);
  return checked({q.dim(0), heads, q.dim(1), tokens, q.dim(2) / heads}, terms, q, true);
}

}  // namespace tessera
