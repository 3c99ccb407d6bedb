#include "engine/ops/loss.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

using namespace tessera;

TEST_CASE("loss: values") {
  const Tensor x = Tensor::from({0, std::log(3.0), 1000, -1000}, {2, 2}, DType::f64);
  const Tensor labels = Tensor::from(std::vector<int64_t>{1, 1}, {2});
  CHECK(cross_entropy(x, labels).item() == doctest::Approx((-std::log(0.75) + 2000) / 2).epsilon(1e-14));
  CHECK(cross_entropy(x, labels).shape() == Shape{});
  CHECK(cross_entropy(x.to(DType::bf16), labels).dtype() == DType::f32);
  const Tensor even = Tensor::zeros({7, 10});
  const Tensor any = Tensor::from(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 9}, {7});
  CHECK(cross_entropy(even, any, {0.1}).item() == doctest::Approx(std::log(10.0)).epsilon(1e-6));
  CHECK(cross_entropy_soft(even, even).item() == 0);
}

TEST_CASE("loss: the mixed and smoothed loss of the SPT and LSA paper") {
  const TensorFile file = read_safetensors(TESSERA_FIXTURES "/augment/mix.safetensors");
  const Tensor &a = file.at("labels"), &b = file.at("labels_b");
  for (const auto& [dtype, suffix, tolerance] :
       {std::tuple{DType::f64, "64", 1e-12}, {DType::f32, "", 1e-6}}) {
    const Tensor logits = file.at("logits").to(dtype);
    for (const std::string name : {"loss.0", "loss.1", "loss.2"}) {
      const Tensor x = logits.clone().require_grad();
      Tape tape;
      const Tensor y = cross_entropy_mixed(x, a, b, file.at(name + ".lam").item(), {0.1});
      tape.backward(y);
      CHECK(relative_error(y.reshape({1}), file.at(name + ".value" + suffix)) < tolerance);
      CHECK(relative_error(x.grad(), file.at(name + ".grad_logits" + suffix)) < tolerance);
    }
  }
  const Tensor logits = file.at("logits").to(DType::f64);
  CHECK(cross_entropy(logits, a).item() ==
        doctest::Approx(file.at("loss.plain.value64").item()).epsilon(1e-14));
  CHECK(cross_entropy(logits, a, {0.1}).item() ==
        doctest::Approx(file.at("loss.smooth.value64").item()).epsilon(1e-14));
}

TEST_CASE("loss: a mixed label of weight 0 does not matter, impossible as it may be") {
  const Tensor x = Tensor::from({1, 2, -INFINITY}, {1, 3}, DType::f64);
  const auto label = [](int64_t k) { return Tensor::from(std::vector<int64_t>{k}, {1}); };
  const double plain = cross_entropy(x, label(1)).item();
  CHECK(cross_entropy_mixed(x, label(1), label(2), 1).item() == plain);
  CHECK(cross_entropy_mixed(x, label(2), label(1), 0).item() == plain);
}

TEST_CASE("loss: the parts of a batch add up to the batch") {
  const Tensor x = random_tensor({6, 4}, 1),
               labels = Tensor::from(std::vector<int64_t>{0, 3, 2, 1, 1, 0}, {6});
  double sum = 0;
  for (int64_t first = 0; first < 6; first += 2)
    sum += cross_entropy(x.rows(first, 2), labels.rows(first, 2), {0.1, 6}).item();
  CHECK(sum == doctest::Approx(cross_entropy(x, labels, {0.1}).item()).epsilon(1e-14));
}

TEST_CASE("loss: rows of the ignored label neither count nor pull") {
  Tensor x = Tensor::from({0, std::log(3.0), 7, -7}, {2, 2}, DType::f64).require_grad();
  Tape tape;
  const Tensor y = cross_entropy(x, Tensor::from(std::vector<int64_t>{1, 255}, {2}), {.ignore = 255});
  tape.backward(y);
  CHECK(y.item() == doctest::Approx(-std::log(0.75)).epsilon(1e-14));
  CHECK(x.grad().values()[0] == doctest::Approx(0.25));
  CHECK(x.grad().values()[2] == 0);
  CHECK(x.grad().values()[3] == 0);
  CHECK(
      cross_entropy(x.detach(), Tensor::from(std::vector<int64_t>{255, 255}, {2}), {.ignore = 255}).item() ==
      0);
}

TEST_CASE("loss: errors") {
  const Tensor x = Tensor::zeros({2, 3}), good = Tensor::from(std::vector<int64_t>{0, 2}, {2});
  CHECK_THROWS_WITH_AS(cross_entropy(x, Tensor::from(std::vector<int64_t>{0, 3}, {2})),
                       "cross_entropy: label 3 in row 1, logits [2, 3] have the classes 0 to 2", Error);
  CHECK_THROWS_WITH_AS(cross_entropy_mixed(x, good, Tensor::from(std::vector<int64_t>{-1, 0}, {2}), 0.5),
                       "cross_entropy: label -1 in row 0, logits [2, 3] have the classes 0 to 2", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(x, Tensor::zeros({3}, DType::i64)),
                       "cross_entropy: logits [2, 3] take labels i64 [2], not i64 [3]", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(x, Tensor::zeros({2})),
                       "cross_entropy: logits [2, 3] take labels i64 [2], not f32 [2]", Error);
  CHECK_THROWS_WITH_AS(
      cross_entropy_soft(x, good),
      "cross_entropy: logits f32 [2, 3] take soft targets of the same type and shape, not i64 [2]", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(x, good, {1.5}), "cross_entropy: smoothing 1.5 is not in 0 .. 1", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(x, good, {0, -1}), "cross_entropy: rows -1 is negative", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(x, Tensor::from(std::vector<int64_t>{255, 3}, {2}), {.ignore = 255}),
                       "cross_entropy: label 3 in row 1, logits [2, 3] have the classes 0 to 2", Error);
  CHECK_THROWS_WITH_AS(cross_entropy_mixed(x, good, good, 0.5, {.ignore = 255}),
                       "cross_entropy: rows are ignored by plain labels alone", Error);
  CHECK_THROWS_WITH_AS(cross_entropy_mixed(x, good, good, 2), "cross_entropy: lam 2 is not in 0 .. 1", Error);
  CHECK_THROWS_WITH_AS(cross_entropy(Tensor::zeros({0, 3}), Tensor::zeros({0}, DType::i64)),
                       "cross_entropy: logits [0, 3]; at least one row of at least one class is wanted",
                       Error);
}
