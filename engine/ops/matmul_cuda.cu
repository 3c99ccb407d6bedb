#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/cuda/deep_product.h"
#include "engine/ops/matmul_kernels.h"

namespace tessera {

// A batch whose products are summed is added up product by product, unless it lies in memory as one deep
// matrix.
template <>
template <class T>
void MatmulKernels<Cuda>::multiply(const Products& products, const T* a, const T* b, Target<T> to) {
  T* const c = to.data;
  const bool add = to.add;
  const Products p = joined(products);
  const auto bytes = static_cast<size_t>(p.m * p.n * (p.c_step == 0 ? 1 : p.count)) * sizeof(T);
  if (p.k == 0) {
    if (!add) backend(Device::cuda).zero(c, bytes);
    return;
  }
  MatrixProduct product{p.transpose_a,
                        p.transpose_b,
                        p.m,
                        p.n,
                        p.k,
                        p.transpose_a ? p.m : p.k,
                        p.transpose_b ? p.k : p.n,
                        p.n,
                        p.count,
                        p.a_step,
                        p.b_step,
                        p.c_step};
  if (p.count == 1) return DeepProduct<T>(product, true).run(a, b, c, add);
  if (p.c_step != 0) return tessera::multiply(product, a, b, c, add);
  product.count = 1;
  for (int64_t i = 0; i < p.count; ++i)
    tessera::multiply(product, a + i * p.a_step, b + i * p.b_step, c, add || i > 0);
}

TESSERA_FOR_FLOATS(MatmulKernels<Cuda>::multiply)

}  // namespace tessera
