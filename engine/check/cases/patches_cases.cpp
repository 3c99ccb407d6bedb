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
  return {
      {"patches", "", {image}, cut, plain_cut},
      {"patches", "of one pixel", {large}, [](In in) { return patches(in[0], 1); }},
      {"shifted_copies", "cardinal", {image}, moved(Directions::cardinal, 1)},
      {"shifted_copies", "diagonal", {large}, moved(Directions::diagonal, 2)},
      {"shifted_copies", "all", {large}, moved(Directions::all, 1)},
      {"shifted_copies", "out of sight", {image}, moved(Directions::all, 9)},
  };
}

}  // namespace tessera
