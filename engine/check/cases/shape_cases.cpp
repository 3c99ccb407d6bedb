#include "engine/check/op_case.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

OpCases copy_cases() {
  const Tensor x = random_tensor({2, 3, 4}, 1);
  return {
      {"broadcast_to",
       "new axis",
       {x},
       [](In in) {
         return broadcast_to(in[0], {3, 2, 3, 4});
       }},
      {"broadcast_to",
       "inner axis",
       {random_tensor({3, 1}, 2)},
       [](In in) {
         return broadcast_to(in[0], {2, 3, 5});
       }},
      {"broadcast_to",
       "class token",
       {random_tensor({1, 1, 6}, 3)},
       [](In in) {
         return broadcast_to(in[0], {4, 1, 6});
       }},
      {"permute",
       "heads",
       {random_tensor({2, 3, 2, 5}, 4)},
       [](In in) {
         return permute(in[0], {0, 2, 1, 3});
       }},
      {"permute",
       "cycle",
       {x},
       [](In in) {
         return permute(in[0], {2, 0, -2});
       }},
      {"permute", "transpose", {x}, [](In in) { return transpose(in[0]); }},
      {"permute",
       "transpose, several tiles",
       {random_tensor({2, 35, 37}, 5)},
       [](In in) { return transpose(in[0]); }},
      {"slice", "first axis", {random_tensor({5, 3}, 6)}, [](In in) { return slice(in[0], 0, 1, 3); }},
      {"slice", "middle axis", {x}, [](In in) { return slice(in[0], 1, 0, 1); }},
      {"slice", "last axis", {x}, [](In in) { return slice(in[0], -1, 2, 2); }},
  };
}

OpCases concat_cases() {
  const Tensor a = random_tensor({2, 1, 3}, 7), b = random_tensor({2, 4, 3}, 8),
               c = random_tensor({2, 2, 3}, 9);
  return {
      {"concat",
       "middle axis",
       {a, b, c},
       [](In in) {
         return concat({in[0], in[1], in[2]}, 1);
       }},
      {"concat",
       "first axis",
       {a, a, b},
       [](In in) {
         return concat({in[0], slice(in[2], 1, 0, 1), in[1]}, 0);
       }},
      {"concat",
       "last axis",
       {b, random_tensor({2, 4, 2}, 10)},
       [](In in) {
         return concat({in[0], in[1]}, -1);
       }},
      {"concat",
       "the same twice",
       {a},
       [](In in) {
         return concat({in[0], in[0]}, -1);
       }},
  };
}

OpCase gathered(const char* variant, const Shape& table, uint64_t seed, const Tensor& index) {
  const auto plain = [=](In in) {  // row after row
    std::vector<Tensor> rows;
    for (const int64_t i : index.integers()) rows.push_back(slice(in[0], 0, i, 1));
    Shape shape = index.shape();
    for (int i = 1; i < table.rank(); ++i) shape = shape.inserted(shape.rank(), table[i]);
    return concat(rows, 0).reshape(shape);
  };
  return {"gather",
          variant,
          {random_tensor(table, seed)},
          [=](In in) { return gather(in[0], beside(index, in[0])); },
          plain};
}

OpCases gather_cases() {
  const Tensor few = Tensor::from(std::vector<int64_t>{2, 0, 2, 2, 3, 0}, {2, 3});
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 300; ++i) numbers.push_back(i * i % 7);
  const Tensor many = Tensor::from(numbers, {300});
  return {gathered("matrix of indices", {5, 3}, 11, few),
          gathered("vector, unused rows", {7, 2, 2}, 12, many), gathered("table of numbers", {4}, 13, few)};
}

}  // namespace

OpCases shape_cases() {
  OpCases cases = copy_cases();
  for (const OpCases& more : {concat_cases(), gather_cases()})
    cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

}  // namespace tessera
