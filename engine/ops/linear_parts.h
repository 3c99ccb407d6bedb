#pragma once

#include "engine/ops/finish.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

// LinearKernels<Cpu>::forward(), which calls `finish` for each part of y, unless it is null.
template <class T>
void linear_forward(const LinearSize& size, const T* x, const T* weight, const T* bias, Activation f, T* y,
                    T* slope, const Finish& finish);

}  // namespace tessera
