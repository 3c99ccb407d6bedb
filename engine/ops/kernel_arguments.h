#pragma once

// What the kernels of several families take.

#include <cstdint>

namespace tessera {

// Where a kernel leaves the gradient of one input: null where it is not wanted; `add` adds to what is there,
// otherwise every element is written.
template <class T> struct Target {
  T* data = nullptr;
  bool add = false;

  explicit operator bool() const { return data != nullptr; }
};

// The gradients of an op with an input, a weight and a bias: norms, convolutions, linear.
template <class T> struct LayerGradients { Target<T> dx, dweight, dbias; };

// x [rows, width]: an op on rows, or on columns, does not see the other axes.
struct RowsSize {
  int64_t rows, width;

  int64_t elements() const { return rows * width; }
};

// Some images of a batch, by their numbers, rising. Null: all.
struct ImageList {
  const int64_t* data = nullptr;
  int64_t count = 0;
};

}  // namespace tessera
