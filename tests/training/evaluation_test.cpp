#include "apps/training/evaluation.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace tessera;

TEST_CASE("an evaluation counts ranks, loss and confusion") {
  Evaluation e;
  e.add(Tensor::from({1, 2, 3, 4, 5, 6,  //
                      6, 5, 4, 3, 2, 1},
                     {2, 6}),
        Tensor::from(std::vector<int64_t>{5, 5}, {2}));
  CHECK(e.images == 2);
  CHECK(e.correct == 1);
  CHECK(e.correct5 == 1);  // the second label has the sixth place
  CHECK(e.top1() == 0.5);
  CHECK(e.at(5, 5) == 1);
  CHECK(e.at(5, 0) == 1);
  CHECK(e.at(0, 5) == 0);
  const double partition =
      std::log(std::exp(1) + std::exp(2) + std::exp(3) + std::exp(4) + std::exp(5) + std::exp(6));
  CHECK(e.loss() == doctest::Approx(partition - 3.5).epsilon(1e-12));
}

TEST_CASE("of equal logits the first class is predicted") {
  Evaluation e;
  e.add(Tensor::from({0, 0, 0}, {1, 3}), Tensor::from(std::vector<int64_t>{1}, {1}));
  CHECK(e.correct == 0);
  CHECK(e.at(1, 0) == 1);
  CHECK(e.correct5 == 1);
}

TEST_CASE("a logit that is NaN is no right answer") {
  Evaluation e;
  const float nan = std::nanf("");
  e.add(Tensor::from({nan, nan, nan}, {1, 3}), Tensor::from(std::vector<int64_t>{0}, {1}));
  CHECK(e.correct == 0);
  CHECK(e.correct5 == 0);
  CHECK(std::isnan(e.loss()));
}
