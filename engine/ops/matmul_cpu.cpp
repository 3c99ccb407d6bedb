#include <algorithm>
#include <array>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/each.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/panel_gemm.h"
#include "engine/ops/matmul_kernels.h"

namespace tessera {

namespace {

constexpr int64_t large = 1 << 26;  // MACs of a product that keeps all threads busy by itself
constexpr int64_t small = 1 << 18;  // MACs that make a task
// A factor is not packed where fewer rows than this meet it, or where the first cache holds it.
constexpr int64_t few_rows = 16, few_numbers = 1 << 12;

constexpr int of_a = 0, of_c = 1, of_panels = 2;  // keys of a thread's scratch memory

// op(b) [k, n] packed in panels, as panel_gemm() takes it.
template <class T> const Wide<T>* packed(const Products& p, const T* b) {
  using W = Wide<T>;
  W* const panels = thread_scratch<W, of_panels>(packed_elements<W>(p.k, p.n));
  const Strided<T> right{b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1};
  for (int64_t j = 0; j < p.n; j += panel_width<W>) pack_panel<T>(p.k, p.n, right, j, panels + j * p.k);
  return panels;
}

// c [m, n] = op(a) op(b), or += with `add`, in the calling thread by linear's kernel. BLAS would pack both
// factors at every call, and an older BLAS does not know newer processors.
template <class W>
void multiply_here(const Products& p, const W* a, const W* panels, const W* b, bool add, W* c) {
  const Strided<W> left{a, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1};
  if (panels) return panel_gemm<W>(p.m, p.n, p.k, left, panels, {add ? c : nullptr, p.n}, {c, p.n});
  constexpr int64_t width = detail::most_vectors * lanes<W>;
  static constexpr std::array<W, width> zeros{};
  for (int64_t j = 0; j < p.n; j += width) {
    const Rows<W> to{c + j, p.n};
    small_gemm<W>(p.m, std::min(width, p.n - j), p.k, left, {b + j, p.n},
                  add ? Rows<const W>(to) : Rows<const W>{zeros.data(), 0}, to);
  }
}

// The factors of a product where they lie.
template <class T> Factor<T> left_of(const Products& p, const T* a) {
  return {a, p.transpose_a ? p.m : p.k, p.transpose_a};
}
template <class T> Factor<T> right_of(const Products& p, const T* b) {
  return {b, p.transpose_b ? p.k : p.n, p.transpose_b};
}

// c [m, n] = op(a) op(b), or += with `add`, in the calling thread.
template <class T> void multiply_one(const Products& p, const T* a, const T* b, bool add, T* c) {
  using W = Wide<T>;
  if (std::is_same_v<T, bf16> && bf16_kernels())
    return gemm<T>({p.m, p.n, p.k}, W(1), left_of(p, a), right_of(p, b), W(add ? 1 : 0), c, p.n);
  const bool as_it_lies =
      !p.transpose_b && p.n % lanes<W> == 0 && (p.m < few_rows || p.k * p.n <= few_numbers);
  if constexpr (std::is_same_v<T, W>) {
    multiply_here<W>(p, a, as_it_lies ? nullptr : packed(p, b), b, add, c);
  } else {
    W* const product = thread_scratch<W, of_c>(p.m * p.n);
    multiply_here<W>(p, wide_copy<of_a>(a, p.m * p.k), packed(p, b), nullptr, false, product);
    write_each(0, p.m * p.n, c, add, [=](int64_t i) { return product[i]; });
  }
}

// The products one after another, each on all threads.
template <class T> void multiply_large(const Products& p, const T* a, const T* b, const Target<T>& c) {
  for (int64_t i = 0; i < p.count; ++i)
    parallel_gemm<T>({p.m, p.n, p.k}, Wide<T>(1), left_of(p, a + i * p.a_step), right_of(p, b + i * p.b_step),
                     Wide<T>(c.add ? 1 : 0), c.data + i * p.c_step, p.n);
}

// The number of products that share a sum. All do where one product keeps the threads busy by itself;
// otherwise there are as many sums as keep them busy, but few enough that their memory stays small.
int64_t products_a_sum(const Products& p) {
  constexpr int64_t most_sums = 16, most_summed = 1 << 22;
  const int64_t macs = std::max<int64_t>(1, p.m * p.n * p.k), size = std::max<int64_t>(1, p.m * p.n);
  if (macs >= large) return p.count;
  const int64_t sums =
      std::clamp<int64_t>(std::min(p.count * macs / chunk_length(small), most_summed / size), 1, most_sums);
  return (p.count + sums - 1) / sums;
}

// c [m, n] = the sum of the products, or += with `add`; bf16 is summed in float and rounded once.
template <class T> void multiply_and_sum(const Products& p, const T* a, const T* b, const Target<T>& c) {
  using W = Wide<T>;
  const int64_t size = p.m * p.n, group = products_a_sum(p), groups = (p.count + group - 1) / group;
  const auto multiply = group < p.count ? gemm<T, W> : parallel_gemm<T, W>;
  const Workspace<W> sums(groups * size);
  const auto add_product = [&](int64_t i, bool first, W* sum) {
    multiply({p.m, p.n, p.k}, W(1), left_of(p, a + i * p.a_step), right_of(p, b + i * p.b_step),
             W(first ? 0 : 1), sum, p.n);
  };
  if (DryRun::active()) {
    if (group == p.count) add_product(0, true, sums.data());  // it takes pool memory of its own
    return;
  }
  load_gemm<T>();
  parallel_for(p.count, group, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) add_product(i, i == begin, sums.data() + begin / group * size);
  });
  parallel_for(size, chunk_length(chunk_elements), [&](int64_t begin, int64_t end) {
    add_parts(begin, end, groups, size, sums.data());
    write_each(begin, end, c.data, c.add, [sum = sums.data()](int64_t i) { return sum[i]; });
  });
}

}  // namespace

template <>
template <class T>
void MatmulKernels<Cpu>::multiply(const Products& products, const T* a, const T* b, Target<T> c) {
  const Products p = joined(products);
  const int64_t macs = p.m * p.n * p.k;
  if (p.count > 1 && p.c_step == 0) return multiply_and_sum(p, a, b, c);
  if (p.count == 1 || macs >= large) return multiply_large(p, a, b, c);
  if (DryRun::active()) return;  // these take no pool memory
  parallel_for(p.count, std::max<int64_t>(1, chunk_length(small) / std::max<int64_t>(macs, 1)),
               [=](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   multiply_one(p, a + i * p.a_step, b + i * p.b_step, c.add, c.data + i * p.c_step);
               });
}

TESSERA_FOR_FLOATS(MatmulKernels<Cpu>::multiply)

}  // namespace tessera
