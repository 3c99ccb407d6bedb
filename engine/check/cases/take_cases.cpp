#include "engine/ops/take.h"

#include "engine/check/op_case.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// Slices the entries one by one and joins them.
Tensor plain(const Tensor& x, int axis, const std::vector<int64_t>& index) {
  std::vector<Tensor> entries;
  for (const int64_t i : index) entries.push_back(slice(x, axis, i, 1));
  return concat(entries, axis);
}

OpCase taken(const char* variant, int axis, const std::vector<int64_t>& index) {
  return {"take",
          variant,
          {random_tensor({3, 4, 5}, 1)},
          [=](In in) { return take(in[0], axis, Tensor::from(index, {static_cast<int64_t>(index.size())})); },
          [=](In in) { return plain(in[0], axis, index); }};
}

}  // namespace

OpCases take_cases() {
  return {taken("an order of the tokens", 1, {2, 0, 3, 1}), taken("some often, some never", -1, {4, 4, 0}),
          taken("of the images", 0, {2, 1, 0})};
}

}  // namespace tessera
