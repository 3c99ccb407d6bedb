#include "engine/ops/correct.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "tests/cuda.h"

using namespace tessera;

TEST_CASE("the rows whose largest value stands at their label are counted, the first of equals") {
  const Tensor logits = Tensor::from({1, 2, 3, 1, 1, 0}, {2, 3});
  const auto count = [&](std::vector<int64_t> labels) {
    return count_correct(logits, Tensor::from(labels, {2})).integers()[0];
  };
  CHECK(count({2, 1}) == 1);
  CHECK(count({2, 0}) == 2);
  CHECK_THROWS_WITH_AS(count_correct(logits, Tensor::zeros({3}, DType::i64)),
                       doctest::Contains("[B, K] and labels i64 [B] are wanted, not i64 [3]"), Error);
}

TEST_CASE("cuda: as many are right as on the CPU") {
  if (!cuda_here()) return;
  const Tensor logits = random_tensor({70, 37}, 3), labels = Tensor::empty({70}, DType::i64);
  for (int64_t i = 0; i < 70; ++i) {  // every other row is right, unless an equal value comes first
    double* row = logits.data<double>() + i * 37;
    const int64_t best = std::max_element(row, row + 37) - row;
    labels.data<int64_t>()[i] = i % 2 == 0 ? best : (best + 1) % 37;
    if (i % 6 == 0 && best > 0) row[0] = row[best];
  }
  const Tensor here = count_correct(logits, labels),
               there = count_correct(logits.to(Device::cuda), labels.to(Device::cuda));
  CHECK(here.item() > 20);
  CHECK(here.item() < 35);
  CHECK(there.item() == here.item());
}
