#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/ops/patches_kernels.h"

namespace tessera {

namespace {

// The offsets as device code may index them: std::array's operators are the host's.
struct Moves {
  int64_t down[9], right[9];
  int count;

  explicit Moves(const Shifts& shifts) : count(shifts.count) {
    for (int d = 0; d < count; ++d) {
      down[d] = shifts.offset[static_cast<size_t>(d)].dy;
      right[d] = shifts.offset[static_cast<size_t>(d)].dx;
    }
  }
};

__device__ inline bool inside(int64_t i, int64_t j, const ImageSize& size) {
  return i >= 0 && i < size.height && j >= 0 && j < size.width;
}

}  // namespace

template <>
template <class T>
void ShiftKernels<Cuda>::forward(const ImageSize& size, const Shifts& shifts, const T* x, T* y) {
  using W = Wide<T>;
  const Moves moves(shifts);
  const int64_t n = size.images * moves.count * size.channels * size.height * size.width;
  map(n, y, false, [=] __device__(int64_t at) {
    const int64_t j = split_off(at, size.width), i = split_off(at, size.height);
    const int64_t c = split_off(at, size.channels), d = split_off(at, moves.count);
    const int64_t from_i = i + moves.down[d], from_j = j + moves.right[d];
    if (!inside(from_i, from_j, size)) return W(0);
    return W(x[((at * size.channels + c) * size.height + from_i) * size.width + from_j]);
  });
}

template <>
template <class T>
void ShiftKernels<Cuda>::backward(const ImageSize& size, const Shifts& shifts, const T* dy, T* dx, bool add) {
  using W = Wide<T>;
  const Moves moves(shifts);
  map(size.images * size.channels * size.height * size.width, dx, add, [=] __device__(int64_t at) {
    const int64_t j = split_off(at, size.width), i = split_off(at, size.height);
    const int64_t c = split_off(at, size.channels);
    W sum = 0;
    for (int d = 0; d < moves.count; ++d) {
      const int64_t from_i = i - moves.down[d], from_j = j - moves.right[d];
      const int64_t plane = (at * moves.count + d) * size.channels + c;
      if (inside(from_i, from_j, size)) sum += W(dy[(plane * size.height + from_i) * size.width + from_j]);
    }
    return sum;
  });
}

TESSERA_FOR_FLOATS(ShiftKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ShiftKernels<Cuda>::backward)

}  // namespace tessera
