#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"
#include "engine/ops/gemm.h"
#include "engine/ops/matmul_kernels.h"

namespace tessera {

namespace {

constexpr int64_t large = 1 << 26;  // MACs from which one product alone keeps all threads busy
constexpr int64_t small = 1 << 18;  // MACs that are worth a task

template <class T>
using Gemm = void(bool, bool, int64_t, int64_t, int64_t, Wide<T>, const T*, int64_t, const T*, int64_t,
                  Wide<T>, T*, int64_t);

template <class T>
void multiply_one(Gemm<T>* gemm_of, const Products& p, int64_t i, const T* a, const T* b, Wide<T> beta,
                  T* c) {
  gemm_of(p.transpose_a, p.transpose_b, p.m, p.n, p.k, Wide<T>(1), a + i * p.a_step,
          p.transpose_a ? p.m : p.k, b + i * p.b_step, p.transpose_b ? p.k : p.n, beta, c + i * p.c_step,
          p.n);
}

}  // namespace

template <>
template <class T>
void MatmulKernels<Cpu>::multiply(const Products& products, const T* a, const T* b, T* c, bool add) {
  const Products p = joined(products);
  const int64_t macs = p.m * p.n * p.k;
  const bool sums = p.c_step == 0;
  if (p.count == 1 || sums || macs >= large) {
    for (int64_t i = 0; i < p.count; ++i)
      multiply_one<T>(parallel_gemm<T>, p, i, a, b, Wide<T>(add || (sums && i > 0) ? 1 : 0), c);
    return;
  }
  parallel_for(p.count, std::max<int64_t>(1, small / std::max<int64_t>(macs, 1)),
               [=](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   multiply_one<T>(gemm<T, T>, p, i, a, b, Wide<T>(add ? 1 : 0), c);
               });
}

TESSERA_FOR_FLOATS(MatmulKernels<Cpu>::multiply)

}  // namespace tessera
