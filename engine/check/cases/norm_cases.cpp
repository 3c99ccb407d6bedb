#include "engine/ops/norm.h"

#include <array>
#include <vector>

#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

constexpr double eps = 1e-5;

Tensor plain(In in) {
  const Tensor centred = in[0] - mean(in[0], {-1}, true);
  const Tensor variance = mean(square(centred), {-1}, true);
  return centred / sqrt(variance + eps) * in[1] + in[2];
}

OpCase norm(const char* variant, const Shape& x, uint64_t seed = 7) {
  const int64_t width = x[-1];
  return {"layer_norm",
          variant,
          {random_tensor(x, seed), random_tensor({width}, seed + 1), random_tensor({width}, seed + 2)},
          [](In in) { return layer_norm(in[0], in[1], in[2], eps); },
          plain};
}

OpCase norm_of_images() {
  const Tensor images = Tensor::from(std::vector<int64_t>{0, 2, 3, 6}, {4});
  OpCase some = norm("of some images", {7, 5, 24});
  some.function = [=](In in) { return layer_norm(in[0], in[1], in[2], eps, images); };
  some.plain = [=](In in) {
    const std::array of{take(in[0], 0, images), in[1], in[2]};
    return plain(of);
  };
  return some;
}

}  // namespace

OpCases norm_cases() {
  return {norm("192 wide", {9, 192}),
          norm("258 wide", {3, 258}),
          norm("600 wide", {2, 600}),
          norm("1030 wide", {2, 1030}),
          norm("", {3, 5, 7}, 1),
          norm("many rows", {70, 3}, 4),
          norm_of_images()};
}

}  // namespace tessera
