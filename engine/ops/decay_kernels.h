#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct DecayKernels {
  // distance [N, N], N = prefix + height * width: the Manhattan distance, or 1 without `use_distance`; zero
  // where either token is of the prefix.
  template <class T>
  static void distances(int64_t height, int64_t width, int64_t prefix, bool use_distance, T* distance);

  // y [H, N, N] = -slope_h distance. distance [N, N]
  template <class T>
  static void fixed(int64_t heads, int64_t tokens, const T* slopes, const Wide<T>* distance, T* y);

  // y [B, H, N, N] = -|alpha distance (g_i + g_j) / 2|. gates [B, N, H]
  template <class T>
  static void content_forward(int64_t images, int64_t heads, int64_t tokens, double alpha,
                              const Wide<T>* distance, const T* gates, T* y);

  // dgates [B, N, H], written or added to.
  template <class T>
  static void content_backward(int64_t images, int64_t heads, int64_t tokens, double alpha,
                               const Wide<T>* distance, const T* gates, const T* dy, T* dgates, bool add);
};

}  // namespace tessera
