#include "engine/check/op_case.h"
#include "engine/ops/patches.h"
#include "engine/ops/shape.h"

namespace tessera {

OpCases patch_cases() {
  using In = std::span<const Tensor>;
  const Tensor image = random_tensor({2, 3, 4, 6}, 1), large = random_tensor({1, 2, 5, 7}, 2);
  const auto cut = [](In in) { return patches(in[0], 2); };
  const auto plain_cut = [](In in) {
    return permute(in[0].reshape({2, 3, 2, 2, 3, 2}), {0, 2, 4, 1, 3, 5}).reshape({2, 6, 12});
  };
  const auto moved = [](Directions directions, int64_t shift) {
    return [=](In in) { return shifted_copies(in[0], directions, shift); };
  };
  const Tensor wide = random_tensor({1, 2, 8, 16}, 3);
  const auto cut_moved = [](int64_t size, Directions directions, int64_t shift) {
    return [=](In in) { return shifted_patches(in[0], size, directions, shift); };
  };
  const auto plain_moved = [](int64_t size, Directions directions, int64_t shift) {
    return [=](In in) { return patches(shifted_copies(in[0], directions, shift), size); };
  };
  return {
      {"patches", "", {image}, cut, plain_cut},
      {"patches", "of one pixel", {large}, [](In in) { return patches(in[0], 1); }},
      {"shifted_copies", "cardinal", {image}, moved(Directions::cardinal, 1)},
      {"shifted_copies", "diagonal", {large}, moved(Directions::diagonal, 2)},
      {"shifted_copies", "all", {large}, moved(Directions::all, 1)},
      {"shifted_copies", "out of sight", {image}, moved(Directions::all, 9)},
      {"shifted_patches",
       "diagonal",
       {wide},
       cut_moved(8, Directions::diagonal, 4),
       plain_moved(8, Directions::diagonal, 4)},
      {"shifted_patches",
       "cardinal",
       {image},
       cut_moved(2, Directions::cardinal, 3),
       plain_moved(2, Directions::cardinal, 3)},
      {"shifted_patches",
       "all, of one pixel",
       {large},
       cut_moved(1, Directions::all, 1),
       plain_moved(1, Directions::all, 1)},
      {"shifted_patches",
       "out of sight",
       {image},
       cut_moved(2, Directions::all, 9),
       plain_moved(2, Directions::all, 9)},
  };
}

}  // namespace tessera
