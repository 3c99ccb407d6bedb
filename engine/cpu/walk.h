#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/device.h"
#include "engine/core/shape.h"

namespace tessera {

// The distance in elements from one entry of each axis to the next.
using Strides = std::array<int64_t, Shape::max_rank>;

// The strides of a contiguous array.
inline Strides row_major(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

// The strides that read a contiguous array of `shape` as if it had the shape `to`, to which it broadcasts: 0
// along repeated axes.
inline Strides stretched(const Shape& shape, const Shape& to) {
  const Strides own = row_major(shape);
  Strides strides{};
  for (int i = 1; i <= shape.rank(); ++i)
    if (shape[-i] != 1)
      strides[static_cast<size_t>(to.rank() - i)] = own[static_cast<size_t>(shape.rank() - i)];
  return strides;
}

// A nest of loops over `rank` axes, outermost first, that steps through several arrays by strides. Axes of
// one entry are left out and contiguous axes are merged, so that arrays of the same shape make a single loop.
template <int Arrays> struct Walk {
  int rank = 0;
  Strides size{};
  std::array<Strides, Arrays> stride{};

  // Appends an axis inside the others.
  void append(int64_t count, const std::array<int64_t, Arrays>& strides) {
    if (count == 1) return;
    const size_t last = static_cast<size_t>(rank) - 1;
    bool continues = rank > 0;
    for (size_t k = 0; k < Arrays && continues; ++k) continues = stride[k][last] == count * strides[k];
    const size_t at = continues ? last : static_cast<size_t>(rank++);
    size[at] = continues ? size[at] * count : count;
    for (size_t k = 0; k < Arrays; ++k) stride[k][at] = strides[k];
  }

  // The product of the sizes of the `axes` outermost axes.
  TESSERA_HD int64_t elements(int axes) const {
    int64_t product = 1;
    for (int i = 0; i < axes; ++i) product *= size[static_cast<size_t>(i)];
    return product;
  }

  // The offsets of the arrays at step `index` of the loops over the `axes` outermost axes.
  TESSERA_HD std::array<int64_t, Arrays> at(int64_t index, int axes) const {
    std::array<int64_t, Arrays> offset{};
    for (int i = axes - 1; i >= 0; --i) {
      const size_t axis = static_cast<size_t>(i);
      const int64_t outer = i == 0 ? 0 : index / size[axis], entry = index - outer * size[axis];
      for (size_t k = 0; k < Arrays; ++k) offset[k] += entry * stride[k][axis];
      index = outer;
    }
    return offset;
  }
};

// Steps over the `axes` outermost axes of a walk one by one, from step `index` on: the offsets of Walk::at
// without its divisions.
template <int Arrays> class Cursor {
 public:
  Cursor(const Walk<Arrays>& walk, int axes, int64_t index)
      : walk_(walk), axes_(axes), offset_(walk.at(index, axes)) {
    for (size_t i = static_cast<size_t>(axes); i-- > 0; index /= walk.size[i])
      entry_[i] = index % walk.size[i];
  }

  const std::array<int64_t, Arrays>& offset() const { return offset_; }

  void advance() {
    for (size_t i = static_cast<size_t>(axes_); i-- > 0;) {
      const bool wraps = ++entry_[i] == walk_.size[i];
      const int64_t steps = wraps ? 1 - walk_.size[i] : 1;
      for (size_t k = 0; k < Arrays; ++k) offset_[k] += steps * walk_.stride[k][i];
      if (!wraps) return;
      entry_[i] = 0;
    }
  }

 private:
  const Walk<Arrays>& walk_;
  int axes_;
  std::array<int64_t, Arrays> offset_;
  Strides entry_{};
};

// The walk over `shape` with these strides. The last array is the one written, and it is walked in the order
// of its memory.
template <class... S> Walk<sizeof...(S)> make_walk(const Shape& shape, const S&... strides) {
  const std::array<Strides, sizeof...(S)> all{strides...};
  std::array<size_t, Shape::max_rank> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const Strides& written = all.back();
  std::stable_sort(order.begin(), order.begin() + shape.rank(),
                   [&](size_t i, size_t j) { return written[i] > written[j]; });
  Walk<sizeof...(S)> walk;
  for (int i = 0; i < shape.rank(); ++i) {
    const size_t axis = order[static_cast<size_t>(i)];
    std::array<int64_t, sizeof...(S)> steps{};
    for (size_t k = 0; k < steps.size(); ++k) steps[k] = all[k][axis];
    walk.append(shape[static_cast<int>(axis)], steps);
  }
  return walk;
}

}  // namespace tessera
