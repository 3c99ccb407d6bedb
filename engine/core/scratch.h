#pragma once

#include "engine/core/dispatch.h"

namespace tessera {

// dispatch() for kernels that take pool memory of their own while they run. Under a DryRun the Cpu kernel is
// called all the same: it takes that memory, so that the peak counts it, and returns where DryRun::active().
template <class Kernel> void dispatch_with_scratch(const Tensor& x, const char* op, Kernel&& kernel) {
  if (!DryRun::active()) return dispatch(x, op, kernel);
  if (x.device() != Device::cpu) return;
  switch (x.dtype()) {
    case DType::f32:
      return kernel.template operator()<Cpu, float>();
    case DType::f64:
      return kernel.template operator()<Cpu, double>();
    case DType::bf16:
      return kernel.template operator()<Cpu, bf16>();
    default:
      return;
  }
}

}  // namespace tessera
