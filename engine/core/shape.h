#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace tessera {

/// The sizes of a tensor's axes, outermost first; at most 8 axes. [] is a scalar of one element. A shape with
/// a negative size, or with more elements than memory could hold, cannot be made: constructors and functions
/// fail.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// The size of axis i; a negative i counts from the back (-1 is the last). Fails out of range.
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(axis(i))]; }
  /// The index of axis i counted from the front. Fails out of range, in the name of `op`.
  int axis(int i, const char* op = "shape") const;
  /// The product of all sizes; 1 for a scalar.
  int64_t elements() const;
  /// The product of the sizes of axes [first, last).
  int64_t elements(int first, int last) const;

  /// A copy with axis i of another size, without it, or with a new axis of `size` before position i.
  Shape with(int i, int64_t size) const;
  Shape without(int i) const;
  Shape inserted(int i, int64_t size) const;

  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  bool operator==(const Shape& other) const;
  std::string text() const;  ///< "[32, 65, 192]"

 private:
  const Shape& checked()
      const;  ///< returns itself; fails where a size or the product of sizes is out of range

  std::array<int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// The shape that a and b broadcast to, by NumPy's rule: axes are aligned at the last one, and a size of 1
/// stretches to the other's. Fails in the name of `op` where two sizes differ and neither is 1.
Shape broadcast(const Shape& a, const Shape& b, const char* op);

}  // namespace tessera
