#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
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
    clear(out, width);
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
void ShiftKernels<Cpu>::backward(const ImageSize& size, const Shifts& shifts, const T* dy, Target<T> dx) {
  const int64_t lines = size.images * size.channels * size.height, width = size.width;
  parallel_for(lines, rows_a_chunk(width * shifts.count), [=](int64_t begin, int64_t end) {
    std::vector<Wide<T>> line_sum(static_cast<size_t>(width));
    const Wide<T>* sum = line_sum.data();
    for (int64_t line = begin; line < end; ++line) {
      sum_moved_back(size, shifts, line, dy, line_sum.data());
      write_each(0, width, dx.data + line * width, dx.add, [=](int64_t j) { return sum[j]; });
    }
  });
}

TESSERA_FOR_FLOATS(ShiftKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ShiftKernels<Cpu>::backward)

namespace {

// Copies n numbers. Lines of the usual patches have a length that the compiler knows, and so take no call.
template <class T> void copy_line(const T* from, int64_t n, T* to) {
  const auto copy = [=](int64_t count) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(count) * sizeof(T));
  };
  n == 2 ? copy(2) : n == 4 ? copy(4) : n == 8 ? copy(8) : copy(n);
}

// Patch number `patch` of the batch, [copies, channels, size, size].
template <class T>
void cut_patch(const PatchPlaces& places, const Shifts& shifts, int64_t patch, const T* x, T* out) {
  const auto [images, channels, height, width] = places.image;
  const int64_t size = places.size, wide = places.wide, high = places.high;
  const int64_t left = patch % wide * size, top = patch / wide % high * size, b = patch / (wide * high);
  for (int d = 0; d < shifts.count; ++d) {
    const auto [down, right] = shifts.offset[static_cast<size_t>(d)];
    const int64_t from = left + right, first = std::clamp<int64_t>(-from, 0, size),
                  last = std::clamp<int64_t>(width - from, first, size);
    const T* plane = x + b * channels * height * width;
    for (int64_t c = 0; c < channels; ++c, plane += height * width)
      for (int64_t i = top + down; i < top + down + size; ++i, out += size) {
        const bool seen = i >= 0 && i < height && first < last;
        if (!seen || last - first < size) clear(out, size);
        if (seen) copy_line(plane + i * width + from + first, last - first, out + first);
      }
  }
}

// The gradient of an image without shifted copies: each line of a patch is the gradient of one line of
// pixels.
template <class T> void paste_patches(const PatchPlaces& places, const T* dy, Target<T> dx) {
  const auto [images, channels, height, width] = places.image;
  const int64_t size = places.size, wide = places.wide;
  parallel_rows(images * places.high * wide, channels * size * size,
                [=, channels = channels, height = height, width = width, high = places.high](int64_t patch) {
                  const int64_t left = patch % wide * size, top = patch / wide % high * size,
                                b = patch / (wide * high);
                  const T* line = dy + patch * channels * size * size;
                  for (int64_t c = 0; c < channels; ++c)
                    for (int64_t i = top; i < top + size; ++i, line += size) {
                      T* const to = dx.data + ((b * channels + c) * height + i) * width + left;
                      if (dx.add)
                        for (int64_t j = 0; j < size; ++j) store(to[j], Wide<T>(to[j]) + Wide<T>(line[j]));
                      else
                        copy_line(line, size, to);
                    }
                });
}

}  // namespace

template <>
template <class T>
void ShiftedPatchKernels<Cpu>::forward(const PatchPlaces& places, const Shifts& shifts, const T* x, T* y) {
  const int64_t elements = places.copies * places.image.channels * places.size * places.size;
  parallel_rows(places.image.images * places.high * places.wide, elements,
                [&](int64_t patch) { cut_patch(places, shifts, patch, x, y + patch * elements); });
}

template <>
template <class T>
void ShiftedPatchKernels<Cpu>::backward(const PatchPlaces& places, const Shifts& shifts, const T* dy,
                                        Target<T> dx) {
  if (shifts.count == 1) return paste_patches(places, dy, dx);
  const ImageSize& image = places.image;
  const int64_t lines = image.images * image.channels * image.height;
  parallel_rows(lines, image.width * shifts.count, [&](int64_t line) {
    const int64_t i = line % image.height, plane = line / image.height;
    for (int64_t j = 0; j < image.width; ++j) {
      T& place = dx.data[line * image.width + j];
      const Wide<T> sum =
          sum_of_copies(places, shifts, plane / image.channels, plane % image.channels, i, j, dy);
      store(place, dx.add ? Wide<T>(place) + sum : sum);
    }
  });
}

TESSERA_FOR_FLOATS(ShiftedPatchKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ShiftedPatchKernels<Cpu>::backward)

}  // namespace tessera
