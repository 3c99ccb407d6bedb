#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/storage.h"

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

// Memory of a kernel's own, from the pool, for the length of a call.
template <class W, Device device = Device::cpu> class Workspace {
 public:
  explicit Workspace(int64_t elements) : memory_(device, static_cast<size_t>(elements) * sizeof(W)) {}
  W* data() const { return static_cast<W*>(memory_.data()); }

 private:
  Storage memory_;
};

// n numbers of this thread's own, kept for its next call; `which` tells those apart that are in use at once.
template <class W, int which> W* thread_scratch(int64_t n) {
  thread_local std::vector<W> kept;
  if (kept.size() < static_cast<size_t>(n)) kept.resize(static_cast<size_t>(n));
  return kept.data();
}

// n numbers to compute with: float and double where they lie, bf16 as floats in thread_scratch.
template <int which, class T> const Wide<T>* wide_copy(const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return x;
  else
    return std::copy_n(x, n, thread_scratch<Wide<T>, which>(n)) - n;
}

}  // namespace tessera
