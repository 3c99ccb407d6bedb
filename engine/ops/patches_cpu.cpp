#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/ops/each.h"
#include "engine/ops/patches_kernels.h"

namespace tessera {

template <>
template <class T>
void ShiftKernels<Cpu>::forward(const ImageSize& size, const Shifts& shifts, const T* x, T* y) {
  parallel_rows(size.images * shifts.count * size.channels * size.height, size.width, [=](int64_t line) {
    const auto [images, channels, height, width] = size;
    const int64_t i = line % height, c = line / height % channels;
    const int64_t d = line / (height * channels) % shifts.count,
                  b = line / (height * channels * shifts.count);
    const auto [down, right] = shifts.offset[static_cast<size_t>(d)];
    T* out = y + line * width;
    std::fill_n(out, width, T(0.0f));
    const int64_t from = i + down, first = std::max<int64_t>(0, -right),
                  last = std::min(width, width - right);
    if (from < 0 || from >= height || first >= last) return;
    const T* in = x + ((b * channels + c) * height + from) * width;
    std::copy(in + first + right, in + last + right, out + first);
  });
}

namespace {

// sum(j) = sum over d of dy_d(i - dy_d, j - dx_d): one line of dx.
template <class T>
void sum_moved_back(const ImageSize& size, const Shifts& shifts, int64_t line, const T* dy, Wide<T>* sum) {
  const auto [images, channels, height, width] = size;
  const int64_t i = line % height, c = line / height % channels, b = line / (height * channels);
  std::fill_n(sum, width, Wide<T>(0));
  for (int d = 0; d < shifts.count; ++d) {
    const auto [down, right] = shifts.offset[static_cast<size_t>(d)];
    const int64_t from = i - down, first = std::max<int64_t>(0, right), last = std::min(width, width + right);
    if (from < 0 || from >= height) continue;
    const T* in = dy + (((b * shifts.count + d) * channels + c) * height + from) * width;
    for (int64_t j = first; j < last; ++j) sum[j] += Wide<T>(in[j - right]);
  }
}

}  // namespace

template <>
template <class T>
void ShiftKernels<Cpu>::backward(const ImageSize& size, const Shifts& shifts, const T* dy, T* dx, bool add) {
  const int64_t lines = size.images * size.channels * size.height, width = size.width;
  parallel_for(lines, rows_a_chunk(width * shifts.count), [=](int64_t begin, int64_t end) {
    std::vector<Wide<T>> line_sum(static_cast<size_t>(width));
    const Wide<T>* sum = line_sum.data();
    for (int64_t line = begin; line < end; ++line) {
      sum_moved_back(size, shifts, line, dy, line_sum.data());
      write_each(0, width, dx + line * width, add, [=](int64_t j) { return sum[j]; });
    }
  });
}

TESSERA_FOR_FLOATS(ShiftKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ShiftKernels<Cpu>::backward)

}  // namespace tessera
