#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// gates [B, N, H] and their decays [B, H, N, N]; distance [N, N].
struct DecaySize {
  int64_t images, heads, tokens;
};

template <class Dev> struct DecayKernels {
  // distance [N, N], N = prefix + height * width: the Manhattan distance or, without `use_distance`, 1; zero
  // where either token belongs to the prefix.
  template <class T>
  static void distances(int64_t height, int64_t width, int64_t prefix, bool use_distance, T* distance);

  // y [H, N, N] = -slope_h distance. distance [N, N]
  template <class T>
  static void fixed(int64_t heads, int64_t tokens, const T* slopes, const Wide<T>* distance, T* y);

  // y = -|alpha distance (g_i + g_j) / 2|.
  template <class T>
  static void content_forward(DecaySize size, double alpha, const Wide<T>* distance, const T* gates, T* y);

  // dgates [B, N, H]
  template <class T>
  static void content_backward(DecaySize size, double alpha, const Wide<T>* distance, const T* gates,
                               const T* dy, Target<T> dgates);
};

}  // namespace tessera
