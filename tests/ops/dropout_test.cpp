#include "engine/ops/dropout.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/core/random.h"

using namespace tessera;

TEST_CASE("dropout: keeps 1 - p of the elements, scaled, each by its own draw") {
  const int64_t n = 100003;
  const std::vector<double> y = dropout(Tensor::full({n}, 1), 0.2, 7).values();
  const auto dropped = std::count(y.begin(), y.end(), 0.0);
  CHECK(static_cast<double>(dropped) / static_cast<double>(n) == doctest::Approx(0.2).epsilon(0.03));
  CHECK(std::count(y.begin(), y.end(), 1.25) == n - dropped);
  for (const uint64_t i : {0u, 6u, 16387u, 100002u})
    CHECK((y[i] != 0) == (unit_float(philox(7, i / 4)[i % 4]) >= 0.2f));
  CHECK(dropout(Tensor::full({n}, 1), 0.2, 8).values() != y);
}

TEST_CASE("dropout: p = 0 is the identity") {
  const Tensor x = random_tensor({5}, 1), f = random_tensor({5}, 2);
  CHECK(dropout(x, 0, 1).raw() == x.raw());
  const std::vector<double> y = drop_path(x, f, 0, 0).values();
  for (size_t i = 0; i < 5; ++i) CHECK(y[i] == x.values()[i] + f.values()[i]);
}

TEST_CASE("channel_dropout: drops whole channels of an image") {
  const int64_t images = 500, channels = 8, n = images * channels;
  const Tensor x = Tensor::full({images, 3, 2, channels}, 1);
  const std::vector<double> y = channel_dropout(x, 0.2, 3).values();
  int64_t dropped = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = i / channels * 6 * channels + i % channels;
    const double first = y[static_cast<size_t>(at)];
    CHECK((first == 0 || first == 1.25));
    for (int64_t pixel = 1; pixel < 6; ++pixel) CHECK(y[static_cast<size_t>(at + pixel * channels)] == first);
    dropped += first == 0;
  }
  CHECK(static_cast<double>(dropped) / static_cast<double>(n) == doctest::Approx(0.2).epsilon(0.1));
  CHECK(channel_dropout(x, 0, 3).raw() == x.raw());
}

TEST_CASE("drop_path: drops whole images") {
  const int64_t images = 1000;
  const Tensor y = drop_path(Tensor::full({images, 2, 3}, 1), Tensor::full({images, 2, 3}, 1), 0.5, 11);
  const std::vector<double> values = y.values();
  int64_t dropped = 0;
  for (size_t b = 0; b < 1000; ++b) {
    const double first = values[6 * b];
    CHECK((first == 1 || first == 3));
    CHECK(std::count(values.begin() + static_cast<int64_t>(6 * b),
                     values.begin() + static_cast<int64_t>(6 * b + 6), first) == 6);
    dropped += first == 1;
  }
  CHECK(dropped > 430);
  CHECK(dropped < 570);
}

TEST_CASE("dropout: errors") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THROWS_WITH_AS(dropout(x, 1, 0), "dropout: p 1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(channel_dropout(x, 1, 0),
                       "channel_dropout: p 1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(channel_dropout(Tensor::zeros({3}), 0.5, 0),
                       "channel_dropout: [3] has no images and channels", Error);
  CHECK_THROWS_WITH_AS(drop_path(x, x, -0.1, 0),
                       "drop_path: p -0.1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(
      drop_path(x, Tensor::zeros({3, 2}), 0, 0),
      "drop_path: f32 [2, 3] and its branch f32 [3, 2] differ; one type and shape are wanted", Error);
}
