#include <algorithm>
#include <array>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/ops/dropout_kernels.h"

namespace tessera {

namespace {

constexpr int64_t block = 256;  // random words drawn at a time

// The random words of elements [first, first + block).
void draw(uint64_t key, int64_t first, uint32_t* draws) {
#pragma omp simd
  for (int64_t group = 0; group < block / 4; ++group) {
    const std::array<uint32_t, 4> words = philox(key, static_cast<uint64_t>(first / 4 + group));
    draws[4 * group] = words[0];
    draws[4 * group + 1] = words[1];
    draws[4 * group + 2] = words[2];
    draws[4 * group + 3] = words[3];
  }
}

// The factor m / (1 - p) of image `image` of a branch.
template <class T> Wide<T> path_factor(int64_t image, double p, uint64_t key) {
  return path_kept(image, p, key) ? Wide<T>(1 / (1 - p)) : Wide<T>(0);
}

// y = x + factor f, or factor f without x (null), for the elements [begin, end). An f whose factor is 0 is
// not read.
template <class T>
void write_residual(int64_t begin, int64_t end, Wide<T> factor, const T* x, const T* f, Target<T> y) {
  using W = Wide<T>;
  if (x && factor == 0)
    write_each(begin, end, y.data, y.add, [=](int64_t i) { return W(x[i]); });
  else if (x)
    write_each(begin, end, y.data, y.add, [=](int64_t i) { return W(x[i]) + factor * W(f[i]); });
  else if (factor == 0)
    write_each(begin, end, y.data, y.add, [](int64_t) { return W(0); });
  else
    write_each(begin, end, y.data, y.add, [=](int64_t i) { return factor * W(f[i]); });
}

// Calls piece(row, begin, end) for elements [begin, end) of rows, which together are all, on all threads.
template <class F> void parallel_pieces(RowsSize size, const F& piece) {
  const int64_t width = size.width, grain = std::min(width, chunk_length(chunk_elements)),
                pieces = grain == 0 ? 0 : (width + grain - 1) / grain;
  parallel_rows(size.rows * pieces, grain, [=](int64_t task) {
    const int64_t begin = task % pieces * grain;
    piece(task / pieces, begin, std::min(width, begin + grain));
  });
}

}  // namespace

template <>
template <class T>
void DropoutKernels<Cpu>::dropout(int64_t n, double p, uint64_t key, const T* x, Target<T> y) {
  using W = Wide<T>;
  const float limit = static_cast<float>(p);
  const W factor = W(1 / (1 - p));
  const int64_t grain = (chunk_length(chunk_elements) + 3) / 4 * 4;  // four draws are made at a time
  parallel_for(n, grain, [=](int64_t begin, int64_t end) {
    uint32_t buffer[block];
    const uint32_t* draws = buffer;
    for (int64_t first = begin; first < end; first += block) {
      draw(key, first, buffer);
      const T* in = x + first;
      write_each(0, std::min(block, end - first), y.data + first, y.add,
                 [=](int64_t i) { return unit_float(draws[i]) >= limit ? W(in[i]) * factor : W(0); });
    }
  });
}

template <>
template <class T>
void DropoutKernels<Cpu>::drop_path(RowsSize size, double p, uint64_t key, const T* x, const T* f,
                                    Target<T> y) {
  parallel_pieces(size, [=](int64_t image, int64_t begin, int64_t end) {
    const int64_t at = image * size.width;
    write_residual(begin, end, path_factor<T>(image, p, key), x ? x + at : nullptr, f + at,
                   {y.data + at, y.add});
  });
}

template <>
template <class T>
void DropoutKernels<Cpu>::add_branch(RowsSize size, double p, uint64_t key, ImageList images, const T* x,
                                     const T* f, T* y) {
  parallel_pieces(size, [=](int64_t image, int64_t begin, int64_t end) {
    const int64_t row = std::lower_bound(images.data, images.data + images.count, image) - images.data;
    const int64_t at = image * size.width;  // an image that is not among them has the factor 0
    write_residual(begin, end, path_factor<T>(image, p, key), x + at, f + row * size.width, {y + at});
  });
}

template <>
template <class T>
void DropoutKernels<Cpu>::branch_gradient(int64_t width, double p, uint64_t key, ImageList images,
                                          const T* dy, Target<T> df) {
  parallel_pieces({images.count, width}, [=](int64_t row, int64_t begin, int64_t end) {
    const int64_t image = images.data[row];
    write_residual(begin, end, path_factor<T>(image, p, key), static_cast<const T*>(nullptr),
                   dy + image * width, {df.data + row * width, df.add});
  });
}

TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::dropout)
TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::drop_path)
TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::add_branch)
TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::branch_gradient)

}  // namespace tessera
