#include "engine/ops/patches.h"

#include "engine/check/op_case.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

Tensor plain_patches(const Tensor& x, int64_t size) {
  const int64_t b = x.dim(0), c = x.dim(1), high = x.dim(2) / size, wide = x.dim(3) / size;
  return permute(x.reshape({b, c, high, size, wide, size}), {0, 2, 4, 1, 3, 5})
      .reshape({b, high * wide, c * size * size});
}

// The image and, for each direction, a shifted window of the image in a frame of zeros.
Tensor plain_copies(const Tensor& x, Directions directions, int64_t shift) {
  struct Offset {
    int64_t down, right;
  };
  constexpr Offset all[] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
  const auto framed = [=](const Tensor& map, int axis) {
    const Tensor zeros = Tensor::zeros(map.shape().with(axis, shift), map.dtype(), map.device());
    return concat({zeros, map, zeros}, axis);
  };
  const Tensor frame = framed(framed(x, 2), 3);
  std::vector<Tensor> copies{x};
  for (const auto& [down, right] : all) {
    const bool diagonal = down != 0 && right != 0;
    if (directions != Directions::all && diagonal != (directions == Directions::diagonal)) continue;
    copies.push_back(
        slice(slice(frame, 2, shift + shift * down, x.dim(2)), 3, shift + shift * right, x.dim(3)));
  }
  return concat(copies, 1);
}

OpCase cut(const char* variant, const Tensor& image, int64_t size) {
  return {"patches",
          variant,
          {image},
          [=](In in) { return patches(in[0], size); },
          [=](In in) { return plain_patches(in[0], size); }};
}

OpCase moved(const char* variant, const Tensor& image, Directions directions, int64_t shift) {
  return {"shifted_copies",
          variant,
          {image},
          [=](In in) { return shifted_copies(in[0], directions, shift); },
          [=](In in) { return plain_copies(in[0], directions, shift); }};
}

OpCase cut_moved(const char* variant, const Tensor& image, int64_t size, Directions directions,
                 int64_t shift) {
  return {"shifted_patches",
          variant,
          {image},
          [=](In in) { return shifted_patches(in[0], size, directions, shift); },
          [=](In in) { return plain_patches(plain_copies(in[0], directions, shift), size); }};
}

}  // namespace

OpCases patches_cases() {
  const Tensor image = random_tensor({2, 3, 4, 6}, 1), large = random_tensor({1, 2, 5, 7}, 2),
               wide = random_tensor({1, 2, 8, 16}, 3);
  return {
      cut("", image, 2),
      cut("of one pixel", large, 1),
      moved("cardinal", image, Directions::cardinal, 1),
      moved("diagonal", large, Directions::diagonal, 2),
      moved("all", large, Directions::all, 1),
      moved("out of sight", image, Directions::all, 9),
      cut_moved("diagonal", wide, 8, Directions::diagonal, 4),
      cut_moved("cardinal", image, 2, Directions::cardinal, 3),
      cut_moved("all, of one pixel", large, 1, Directions::all, 1),
      cut_moved("out of sight", image, 2, Directions::all, 9),
  };
}

}  // namespace tessera
