#include "engine/core/shape.h"

#include <algorithm>
#include <ostream>

#include "engine/core/error.h"

namespace tessera {

Shape::Shape(std::span<const int64_t> sizes) {
  check(sizes.size() <= max_rank, "shape: ", sizes.size(), " axes, at most ", max_rank, " are supported");
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<int>(sizes.size());
  checked();
}

const Shape& Shape::checked() const {
  constexpr int64_t most = int64_t{1} << 59;  // elements of 8 bytes in an address space of 62 bits
  int64_t product = std::count(begin(), end(), 0) > 0 ? 0 : 1;
  for (int i = 0; i < rank_; ++i) {
    const int64_t size = sizes_[static_cast<size_t>(i)];
    check(size >= 0, "shape: axis ", i, " has the size ", size, ", sizes are not negative");
    check(product == 0 || product <= most / size, "shape: ", *this, " has too many elements");
    product *= size;
  }
  return *this;
}

int Shape::axis(int i, const char* op) const {
  const int at = i < 0 ? i + rank_ : i;
  if (at < 0 || at >= rank_) fail(op, ": axis ", i, " of ", *this, ", which has ", rank_);
  return at;
}

int64_t Shape::elements() const { return elements(0, rank_); }

int64_t Shape::elements(int first, int last) const {
  int64_t product = 1;
  for (int i = first; i < last; ++i) product *= sizes_[static_cast<size_t>(i)];
  return product;
}

Shape Shape::with(int i, int64_t size) const {
  Shape changed = *this;
  changed.sizes_[static_cast<size_t>(axis(i))] = size;
  return changed.checked();
}

Shape Shape::without(int i) const {
  Shape changed = *this;
  std::copy(begin() + axis(i) + 1, end(), changed.sizes_.begin() + axis(i));
  changed.sizes_[static_cast<size_t>(--changed.rank_)] = 0;
  return changed;
}

Shape Shape::inserted(int i, int64_t size) const {
  check(rank_ < max_rank, "shape: ", *this, " has no room for another axis");
  const int at = i < 0 ? i + rank_ + 1 : i;
  check(at >= 0 && at <= rank_, "shape: no position ", i, " in ", *this, " for a new axis");
  Shape changed = *this;
  std::copy_backward(begin() + at, end(), changed.sizes_.begin() + rank_ + 1);
  changed.sizes_[static_cast<size_t>(at)] = size;
  ++changed.rank_;
  return changed.checked();
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::text() const {
  std::string text = "[";
  for (const int64_t size : *this) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.text(); }

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const int64_t x = longer[-i], y = shorter[-i];
    if (x != y && x != 1 && y != 1) fail(op, ": ", a, " and ", b, " do not broadcast: ", x, " against ", y);
    result = result.with(-i, x == 1 ? y : x);
  }
  return result;
}

}  // namespace tessera
