#pragma once

#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "engine/core/thread_scope.h"

namespace tessera {

// Kernels do not run and memory is not touched: shapes, costs and the tape of a model of any size are there
// at once (tessera models, tessera summary).
class DryRun : public ThreadScope<DryRun> {};

// The one place where a run-time type and device become template arguments: calls
// kernel.operator()<Dev, T>() with Dev of Cpu, Cuda and T of float, double, bf16. Fails in the name of
// `op` for other types. In a build with CUDA a kernel that lacks its Cuda member does not link.
template <class Kernel> void dispatch(const Tensor& x, const char* op, Kernel&& kernel) {
  if (DryRun::active()) return;
  const auto on = [&]<class Dev>() {
    switch (x.dtype()) {
      case DType::f32:
        return kernel.template operator()<Dev, float>();
      case DType::f64:
        return kernel.template operator()<Dev, double>();
      case DType::bf16:
        return kernel.template operator()<Dev, bf16>();
      default:
        fail(op, ": ", x.dtype(), " ", x.shape(), " is not floating; convert it with to(DType::f32)");
    }
  };
  if constexpr (has_cuda)
    if (x.device() == Device::cuda) return on.template operator()<Cuda>();
  on.template operator()<Cpu>();
}

}  // namespace tessera

// Compiles a kernel of _cpu.cpp or _cuda.cu for the floating types:
// TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::forward)
#define TESSERA_FOR_FLOATS(kernel)                  \
  template decltype(kernel<float>) kernel<float>;   \
  template decltype(kernel<double>) kernel<double>; \
  template decltype(kernel<tessera::bf16>) kernel<tessera::bf16>;
