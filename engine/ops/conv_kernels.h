#pragma once

#include <array>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The sizes of a convolution: a map of height x width, kernel_h x kernel_w windows, out_h x out_w of them.
struct ConvSize {
  int64_t images, height, width, in, out, kernel_h, kernel_w, stride, padding, out_h, out_w;

  TESSERA_HD int64_t window() const { return kernel_h * kernel_w; }
  TESSERA_HD int64_t positions() const { return out_h * out_w; }  // windows an image

  std::array<int64_t, 4> weight_shape() const { return {out, in, kernel_h, kernel_w}; }

  // Whether the windows are the pixels: a linear map of each.
  bool of_pixels() const { return window() == 1 && stride == 1 && padding == 0; }
};

// In all of them: x [images, height, width, in], y [images, out_h, out_w, out].

template <class Dev> struct ConvKernels {
  // weight [out, in, kernel_h, kernel_w].
  template <class T>
  static void forward(const ConvSize& size, const T* x, const T* weight, const T* bias, T* y);
  template <class T>
  static void backward(const ConvSize& size, const T* dy, const T* x, const T* weight,
                       const LayerGradients<T>& gradients);
};

template <class Dev> struct DepthwiseConvKernels {
  // weight [out, 1, kernel_h, kernel_w], out a multiple of in.
  template <class T>
  static void forward(const ConvSize& size, const T* x, const T* weight, const T* bias, T* y);
  template <class T>
  static void backward(const ConvSize& size, const T* dy, const T* x, const T* weight,
                       const LayerGradients<T>& gradients);
};

template <class Dev> struct UnfoldKernels {
  // y [images, out_h * out_w, in * kernel_h * kernel_w], each row (c, y, x).
  template <class T> static void forward(const ConvSize& size, const T* x, T* y);
  template <class T> static void backward(const ConvSize& size, const T* dy, Target<T> dx);
};

}  // namespace tessera
