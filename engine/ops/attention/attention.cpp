#include "engine/ops/attention/attention.h"

#include "engine/autograd/tape.h"
#include "engine/core/scratch.h"
#include "engine/ops/attention/attention_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"

namespace tessera {

namespace {

// q, k or v: columns [first, first + H d) of each token of a tensor.
struct Columns {
  Tensor tensor;
  int64_t first = 0;

  template <class T> TokenHeads<const T> heads() const { return {tensor.data<T>() + first, tensor.dim(2)}; }
  template <class T> TokenHeads<T> heads_of(const InputGradient& gradient) const {
    const Target<T> target = gradient.target<T>();
    return {target ? target.data + first : nullptr, tensor.dim(2), target.add};
  }
};

// One call of attention: the operands, terms and distance tables that forward and backward both read.
struct Call {
  AttentionSizes sizes;
  Columns q, k, v;
  ScoreTerms terms;
  Tensor slope_distance, gate_distance;  // [N, N]

  Call(const AttentionSizes& its_sizes, Columns its_q, Columns its_k, Columns its_v,
       const ScoreTerms& its_terms)
      : sizes(its_sizes), q(std::move(its_q)), k(std::move(its_k)), v(std::move(its_v)), terms(its_terms) {
    if (terms.slopes.defined()) slope_distance = table(true);
    if (terms.gates.defined())
      gate_distance =
          slope_distance.defined() && terms.use_distance ? slope_distance : table(terms.use_distance);
  }

  Tensor table(bool use_distance) const {
    return distances(terms.grid, terms.prefix, use_distance, wide(q.tensor.dtype()), q.tensor.device());
  }

  template <class T> BatchTerms<T> pointers() const {
    const auto data = []<class U>(const Tensor& x, U*) { return x.defined() ? x.data<U>() : nullptr; };
    constexpr T* of_type = nullptr;
    constexpr Wide<T>* of_wide = nullptr;
    return {.scale = static_cast<Wide<T>>(terms.scale),
            .learned_scale = data(terms.learned_scale, of_type),
            .prior = data(terms.prior, of_type),
            .prior_heads = terms.prior.defined() ? terms.prior.dim(0) : 0,
            .bias = data(terms.bias, of_type),
            .slopes = data(terms.slopes, of_type),
            .slope_distance = data(slope_distance, of_wide),
            .gates = data(terms.gates, of_type),
            .gate_distance = data(gate_distance, of_wide),
            .alpha = static_cast<Wide<T>>(terms.alpha),
            .mask = data(terms.mask, of_type),
            .masks = terms.mask.defined() ? terms.mask.dim(0) : 0,
            .mask_diagonal = terms.mask_diagonal};
  }

  // y = softmax(s) v, and the log-sum-exp of each row of s if lse is defined.
  void forward(const Tensor& y, const Tensor& lse) const {
    dispatch(y, "attention", [&]<class Dev, class T>() {
      AttentionKernels<Dev>::template forward<T>(sizes, q.heads<T>(), k.heads<T>(), v.heads<T>(),
                                                 pointers<T>(), y.data<T>(),
                                                 lse.defined() ? lse.data<Wide<T>>() : nullptr);
    });
  }

  // dv = P^T dy; ds = P (dy v^T - rowsum(dy y)), back through the terms; dq = ds k, dk = ds^T q.
  // `first_term` is the index of learned_scale among the inputs of the op; the other learned terms follow.
  void backward(Gradients& g, const Tensor& lse, const InputGradient& dq, const InputGradient& dk,
                const InputGradient& dv, int first_term) const {
    const InputGradient dscale(g, first_term), dprior(g, first_term + 1), dbias(g, first_term + 2),
        dgates(g, first_term + 3);
    dispatch_with_scratch(g.dy(), "attention", [&]<class Dev, class T>() {
      AttentionKernels<Dev>::template backward<T>(
          sizes, q.heads<T>(), k.heads<T>(), v.heads<T>(), pointers<T>(), lse.data<Wide<T>>(),
          g.dy().data<T>(),
          {q.heads_of<T>(dq), k.heads_of<T>(dk), v.heads_of<T>(dv), dscale.target<T>(), dprior.target<T>(),
           dbias.target<T>(), dgates.target<T>()});
    });
  }
};

struct Result {
  Tensor y, lse;
};

Result run(const Call& call, Inputs inputs) {
  const auto& s = call.sizes;
  const Tensor& q = call.q.tensor;
  Result result{Tensor::empty({s.images, s.queries, s.heads * s.head_dim}, q.dtype(), q.device()), {}};
  if (wants_gradient(inputs))
    result.lse = Tensor::empty({s.images, s.heads, s.queries}, wide(q.dtype()), q.device());
  call.forward(result.y, result.lse);
  return result;
}

}  // namespace

Tensor attention(const Tensor& qkv, int64_t heads, const ScoreTerms& t) {
  const AttentionSizes sizes = attention_sizes(qkv, heads, t);
  const int64_t width = heads * sizes.head_dim;
  const Call call(sizes, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, t);
  const Inputs inputs{qkv, t.learned_scale, t.prior, t.bias, t.gates};
  const auto [y, lse] = run(call, inputs);
  const auto backward = [call, lse = lse](Gradients& g) {
    const InputGradient dqkv(g, 0);
    call.backward(g, lse, dqkv, dqkv, dqkv, 1);
  };
  return record("attention", y, inputs, backward, sizes.macs());
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads, const ScoreTerms& t) {
  const AttentionSizes sizes = attention_sizes(q, k, v, heads, t);
  const Call call(sizes, {q}, {k}, {v}, t);
  const Inputs inputs{q, k, v, t.learned_scale, t.prior, t.bias, t.gates};
  const auto [y, lse] = run(call, inputs);
  const auto backward = [call, lse = lse](Gradients& g) {
    const InputGradient dq(g, 0), dk(g, 1), dv(g, 2);
    call.backward(g, lse, dq, dk, dv, 3);
  };
  return record("attention", y, inputs, backward, sizes.macs());
}

Tensor attention_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& t) {
  const AttentionSizes sizes = sizes_of_first(q, kv, heads, t);
  // The GPU's kernels handle the terms of pairs only where there are as many queries as keys.
  if (q.device() != Device::cpu) return attention_of_first_plain(q, kv, heads, t);
  const Call call(sizes, {q}, {kv, 0}, {kv, heads * sizes.head_dim}, t);
  const Inputs inputs{q, kv, t.learned_scale, t.prior, t.bias, t.gates};
  const auto [y, lse] = run(call, inputs);
  const auto backward = [call, lse = lse](Gradients& g) {
    const InputGradient dq(g, 0), dkv(g, 1);
    call.backward(g, lse, dq, dkv, dkv, 2);
  };
  return record("attention", y, inputs, backward, sizes.macs());
}

}  // namespace tessera
