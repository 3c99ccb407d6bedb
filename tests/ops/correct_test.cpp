#include "engine/ops/correct.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("the rows whose largest value stands at their label are counted, the first of equals") {
  const Tensor logits = Tensor::from({1, 2, 3, 1, 1, 0}, {2, 3});
  const auto count = [&](std::vector<int64_t> labels) {
    return count_correct(logits, Tensor::from(labels, {2})).integers()[0];
  };
  CHECK(count({2, 1}) == 1);
  CHECK(count({2, 0}) == 2);
  CHECK_THROWS_AS(count_correct(logits, Tensor::zeros({3}, DType::i64)), Error);
}
