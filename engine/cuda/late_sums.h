#pragma once

// Sums of parts that nothing waits for. Within a backward pass only the optimizer reads the gradient of a
// layer norm's weight, of a bias or of a learned temperature. Their last sums, some microseconds each, would
// stand between two kernels of the pass; they are put off to its end, where one launch does many of them.

#include <memory>

#include "engine/core/scratch.h"

namespace tessera {

// Parts that live until their sum is launched. [count, n]
template <class T> using LateParts = std::shared_ptr<Workspace<Wide<T>, Device::cuda>>;
template <class T> LateParts<T> late_parts(int64_t elements) {
  return std::make_shared<Workspace<Wide<T>, Device::cuda>>(elements);
}

// y [n] = parts[0] + parts[1] + ... in a fixed order, or += if add: at the end of the backward pass that
// runs on this thread, or before y is read in it; at once where none runs.
template <class T> void sum_late(int64_t n, int64_t count, const LateParts<T>& parts, T* y, bool add);

// The DeviceBackend's words of the same names.
void begin_backward();
void before_reading(const void* gradient);
void end_backward();

}  // namespace tessera
