#include "engine/ops/dropout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/core/random.h"
#include "engine/ops/norm.h"
#include "engine/ops/take.h"

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
  const std::vector<double> y = drop_path(x, f, {}).values();
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
  const Tensor y = drop_path(Tensor::full({images, 2, 3}, 1), Tensor::full({images, 2, 3}, 1), {0.5, 11});
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

TEST_CASE("kept_images: those whose branch counts, and image 0 where there are none") {
  const int64_t batch = 1000;
  const Tensor kept = kept_images(batch, 0.3, 11), one = Tensor::full({batch, 1}, 1);
  CHECK(kept.elements() > 630);
  CHECK(kept.elements() < 770);
  const std::vector<double> factors = drop_path(Tensor::zeros({batch, 1}), one, {0.3, 11}).values();
  std::vector<int64_t> wanted;
  for (int64_t i = 0; i < batch; ++i)
    if (factors[static_cast<size_t>(i)] != 0) wanted.push_back(i);
  CHECK(kept.integers() == wanted);
  CHECK_FALSE(kept_images(batch, 0, 11).defined());
  CHECK_FALSE(kept_images(0, 0.5, 11).defined());
  CHECK(kept_images(3, 0.999, 11).integers() == std::vector<int64_t>{0});
}

TEST_CASE("drop_path, layer_norm: of some images they have the bits of all") {
  for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor x = random_tensor({20, 3, 24}, 1).to(type), f = random_tensor({20, 3, 24}, 2).to(type),
                 images = kept_images(20, 0.4, 6), weight = random_tensor({24}, 3).to(type);
    REQUIRE(images.elements() < 20);
    CHECK(drop_path(x, take(f, 0, images), {0.4, 6, images}).values() == drop_path(x, f, {0.4, 6}).values());
    CHECK(layer_norm(x, weight, weight, 1e-5, images).values() ==
          take(layer_norm(x, weight, weight, 1e-5), 0, images).values());
  }
}

TEST_CASE("drop_path, layer_norm: of some images on a tape that keeps everything they are steps for all") {
  const Tensor x = random_tensor({6, 2, 3}, 1).require_grad(), one = Tensor::full({3}, 1, DType::f64),
               images = kept_images(6, 0.4, 6);
  Tape tape;
  tape.keep_all();
  drop_path(x, layer_norm(x, one, one, 1e-5, images), {0.4, 6, images});
  std::vector<std::string> ops;
  for (const Tape::Step& step : tape.steps()) ops.emplace_back(step.op->name);
  CHECK(ops == std::vector<std::string>{"take", "layer_norm", "concat", "take", "drop_path"});
}

TEST_CASE("dropout: errors") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THROWS_WITH_AS(dropout(x, 1, 0), "dropout: p 1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(channel_dropout(x, 1, 0),
                       "channel_dropout: p 1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(channel_dropout(Tensor::zeros({3}), 0.5, 0),
                       "channel_dropout: [3] has no images and channels", Error);
  CHECK_THROWS_WITH_AS(drop_path(x, x, {-0.1, 0}),
                       "drop_path: p -0.1 is no probability of at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(
      drop_path(x, Tensor::zeros({3, 2}), {}),
      "drop_path: f32 [2, 3] and its branch f32 [3, 2] differ; one type and shape are wanted", Error);
  const auto list = [](const std::vector<int64_t>& images) {
    return Tensor::from(images, {static_cast<int64_t>(images.size())});
  };
  CHECK_THROWS_WITH_AS(drop_path(x, x, {0.1, 0, list({1})}),
                       "drop_path: f32 [2, 3] and its branch f32 [2, 3] differ; one type and shape are "
                       "wanted, but for the images left out",
                       Error);
  CHECK_THROWS_WITH_AS(drop_path(x, x, {0.1, 0, list({1, 0})}),
                       "drop_path: image 0 follows 1 in a batch of 2; images in rising order are wanted",
                       Error);
  uint64_t keeps_second = 0;
  const auto second = list({1});
  for (Tensor kept; !kept.defined() || kept.integers() != second.integers();)
    kept = kept_images(2, 0.5, ++keeps_second);
  CHECK_THROWS_WITH_AS(drop_path(x, Tensor::zeros({1, 3}), {0.5, keeps_second, list({0})}),
                       "drop_path: image 1 keeps its branch, which was not computed; kept_images() lists "
                       "those that do",
                       Error);
  const Tensor w = Tensor::zeros({3});
  CHECK_THROWS_WITH_AS(layer_norm(x, w, w, 1e-5, list({2})),
                       "layer_norm: image 2 follows -1 in a batch of 2; images in rising order are wanted",
                       Error);
  CHECK_THROWS_WITH_AS(layer_norm(x, w, w, 1e-5, Tensor::zeros({2})),
                       "layer_norm: images f32 [2], a list of i64 on the host is wanted", Error);
}
