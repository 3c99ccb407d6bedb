#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The offsets (dy, dx) of the copies in pixels; the first, (0, 0), is the image itself.
struct Shifts {
  struct Offset {
    int64_t dy = 0, dx = 0;
  };
  int count = 1;
  std::array<Offset, 9> offset{};

  TESSERA_HD int64_t down(int d) const { return offset[static_cast<size_t>(d)].dy; }
  TESSERA_HD int64_t right(int d) const { return offset[static_cast<size_t>(d)].dx; }
};

// The sizes of x [images, channels, height, width].
struct ImageSize {
  int64_t images, channels, height, width;
  TESSERA_HD bool has(int64_t i, int64_t j) const { return i >= 0 && i < height && j >= 0 && j < width; }
};

// The layout of the patches of images and their copies, [images, high, wide, copies, channels, size, size].
struct PatchPlaces {
  ImageSize image;
  int64_t copies, size, high, wide;

  PatchPlaces(const ImageSize& its_image, int64_t its_copies, int64_t its_size)
      : image(its_image),
        copies(its_copies),
        size(its_size),
        high(image.height / size),
        wide(image.width / size) {}

  // The offset of pixel (i, j) of channel c of copy d of image b.
  TESSERA_HD int64_t operator()(int64_t b, int64_t d, int64_t c, int64_t i, int64_t j) const {
    const int64_t u = i / size, v = j / size;
    return (((b * high + u) * wide + v) * copies + d) * image.channels * size * size +
           (c * size + i - u * size) * size + j - v * size;
  }
};

template <class Dev> struct ShiftKernels {
  // y [images, shifts, channels, height, width]: y_d(i, j) = x(i + dy_d, j + dx_d), 0 outside.
  template <class T> static void forward(const ImageSize& size, const Shifts& shifts, const T* x, T* y);

  // dx(i, j) = sum over d of dy_d(i - dy_d, j - dx_d),
  template <class T>
  static void backward(const ImageSize& size, const Shifts& shifts, const T* dy, Target<T> dx);
};

// The gradient of pixel (i, j) of channel c of image b: the sum over its copies in dy, laid out by `places`.
template <class T>
TESSERA_HD inline Wide<T> sum_of_copies(const PatchPlaces& places, const Shifts& shifts, int64_t b, int64_t c,
                                        int64_t i, int64_t j, const T* dy) {
  Wide<T> sum = 0;
  for (int d = 0; d < shifts.count; ++d) {
    const int64_t from_i = i - shifts.down(d), from_j = j - shifts.right(d);
    if (places.image.has(from_i, from_j)) sum += Wide<T>(dy[places(b, d, c, from_i, from_j)]);
  }
  return sum;
}

// ShiftKernels with the copies cut into patches: y and dy are laid out by `places`.
template <class Dev> struct ShiftedPatchKernels {
  template <class T> static void forward(const PatchPlaces& places, const Shifts& shifts, const T* x, T* y);
  template <class T>
  static void backward(const PatchPlaces& places, const Shifts& shifts, const T* dy, Target<T> dx);
};

}  // namespace tessera
