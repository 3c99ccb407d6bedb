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
  using W = Wide<T>;
  const int64_t images = size.rows, width = size.width;
  const int64_t grain = std::min(width, chunk_length(chunk_elements)),
                pieces = grain == 0 ? 0 : (width + grain - 1) / grain;
  parallel_rows(images * pieces, grain, [=](int64_t task) {
    const int64_t image = task / pieces, begin = task % pieces * grain, at = image * width;
    const W factor = path_kept(image, p, key) ? W(1 / (1 - p)) : W(0);
    const T *a = x ? x + at : nullptr, *b = f + at;
    T* out = y.data + at;
    const bool add = y.add;
    const int64_t end = std::min(width, begin + grain);
    if (x && factor == 0)
      write_each(begin, end, out, add, [=](int64_t i) { return W(a[i]); });
    else if (x)
      write_each(begin, end, out, add, [=](int64_t i) { return W(a[i]) + factor * W(b[i]); });
    else if (factor == 0)
      write_each(begin, end, out, add, [](int64_t) { return W(0); });
    else
      write_each(begin, end, out, add, [=](int64_t i) { return factor * W(b[i]); });
  });
}

TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::dropout)
TESSERA_FOR_FLOATS(DropoutKernels<Cpu>::drop_path)

}  // namespace tessera
