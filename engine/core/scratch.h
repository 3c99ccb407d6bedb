#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/per_thread.h"
#include "engine/core/storage.h"

namespace tessera {

// dispatch() for kernels that allocate a Workspace. In a DryRun the Cpu kernel is called too, so that the
// memory peak counts its workspace; the kernel allocates it and then returns where DryRun::active().
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

// Pool memory for intermediate values of a kernel; its content is not set.
template <class W, Device device = Device::cpu> class Workspace {
 public:
  explicit Workspace(int64_t elements) : memory_(device, static_cast<size_t>(elements) * sizeof(W)) {}
  W* data() const { return static_cast<W*>(memory_.data()); }

 private:
  Storage memory_;
};

// Memory for n numbers that belongs to this thread and is kept for its next call. It begins with a line of
// the cache, as pool memory does, so that no vector lies in two lines. Arrays that are in use at the same
// time need different numbers `which`.
template <class W, int which> W* thread_scratch(int64_t n) {
  constexpr size_t line = 64;  // bytes
  static const PerThread<std::vector<W>> of_all;
  std::vector<W>& kept = of_all.of_this_thread();
  const size_t wanted = static_cast<size_t>(n) + line / sizeof(W);
  if (kept.size() < wanted) kept.resize(wanted);
  void* memory = kept.data();
  size_t bytes = kept.size() * sizeof(W);
  return static_cast<W*>(std::align(line, static_cast<size_t>(n) * sizeof(W), memory, bytes));
}

// x [n] in the type that it is computed in: x itself if float or double, else a copy as floats in
// thread_scratch.
template <int which, class T> const Wide<T>* wide_copy(const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return x;
  else
    return std::copy_n(x, n, thread_scratch<Wide<T>, which>(n)) - n;
}

}  // namespace tessera
