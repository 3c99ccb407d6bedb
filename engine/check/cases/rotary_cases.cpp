#include "engine/ops/rotary.h"

#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// Each pair (a, b) of channels becomes (a cos - b sin, b cos + a sin).
Tensor plain(const Tensor& x, const Tensor& turns) {
  const int64_t tokens = turns.dim(0), pairs = turns.dim(1);
  const Tensor apart = x.reshape({-1, tokens, x.dim(-1) / (2 * pairs), pairs, 2});
  const Tensor a = slice(apart, 4, 0, 1), b = slice(apart, 4, 1, 1);
  const Tensor of_token = turns.reshape({tokens, 1, pairs, 2});
  const Tensor cos = slice(of_token, 3, 0, 1), sin = slice(of_token, 3, 1, 1);
  return concat({a * cos - b * sin, b * cos + a * sin}, 4).reshape(x.shape());
}

OpCase rotated(const char* variant, const Shape& x, int64_t head_dim) {
  const auto turns = [=](const Tensor& like) {
    return turns_of(raster_angles(x[-2], head_dim), like.dtype(), like.device());
  };
  return {"rotary",
          variant,
          {random_tensor(x, 1)},
          [=](In in) { return rotary(in[0], turns(in[0])); },
          [=](In in) { return plain(in[0], turns(in[0])); }};
}

}  // namespace

OpCases rotary_cases() { return {rotated("two heads", {2, 5, 12}, 6), rotated("one pair", {70, 3, 2}, 2)}; }

}  // namespace tessera
