#include "engine/optim/ema.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/optim/steps.h"

using namespace tessera;

TEST_CASE("the average starts as the weights are and follows them") {
  const Tensor p = leaf({1, 2});
  Ema ema({{"p", p}}, 0.9);
  CHECK(ema.state()[0].first == "p");
  CHECK(ema.state()[0].second.values() == std::vector<double>{1, 2});
  p.copy_from(Tensor::from({2, 0}, {2}, DType::f64));
  ema.update();
  ema.update();
  const std::vector<double> e = ema.state()[0].second.values();
  CHECK(e[0] == doctest::Approx(0.81 * 1 + 0.19 * 2).epsilon(1e-14));
  CHECK(e[1] == doctest::Approx(0.81 * 2).epsilon(1e-14));
  CHECK(p.values() == std::vector<double>{2, 0});
}

TEST_CASE("after a step that was left out the average stays") {
  const Tensor p = leaf({1, 2});
  Ema ema({{"p", p}}, 0.9);
  p.fill(5);
  ema.update(Tensor::from({std::nan("")}, {1}, DType::f64));
  CHECK(ema.state()[0].second.values() == std::vector<double>{1, 2});
  ema.update(Tensor::from({3}, {1}, DType::f64));
  CHECK(ema.state()[0].second.values()[0] == doctest::Approx(1.4).epsilon(1e-14));
}

TEST_CASE("a decay of 0 copies the weights") {
  const Tensor p = leaf({1}, DType::f32);
  Ema ema({{"p", p}}, 0);
  p.fill(3);
  ema.update();
  CHECK(ema.state()[0].second.item() == 3);
}

TEST_CASE("swapped twice, weights and averages are as before") {
  const Tensor p = leaf({1, 2});
  Ema ema({{"p", p}}, 0.5);
  p.copy_from(Tensor::from({3, 4}, {2}, DType::f64));
  ema.swap();
  CHECK(p.values() == std::vector<double>{1, 2});
  CHECK(ema.state()[0].second.values() == std::vector<double>{3, 4});
  ema.swap();
  CHECK(p.values() == std::vector<double>{3, 4});
}

TEST_CASE("the same bits on one thread and on many, and after its state was loaded by another") {
  const auto run = [] {
    const NamedTensors parameters = uneven_parameters();
    Ema ema(parameters, 0.99);
    for (const auto& [name, p] : parameters) p.copy_from(drawn(p.shape(), 5));
    ema.update();
    Ema other(parameters, 0.99);
    other.load_state(ema.state(), "x");
    ema.update();
    other.update();
    CHECK(all_values(ema.state()) == all_values(other.state()));
    return all_values(ema.state());
  };
  const auto [one, many] = on_one_and_many_threads(run);
  CHECK(one == many);
}

TEST_CASE("what cannot be averaged is refused") {
  const auto error = [](const NamedTensors& values, double d = 0.9) {
    return error_of([&] { Ema(values, d); });
  };
  const Tensor p = Tensor::zeros({1});
  CHECK(error({}) == "ema: there is nothing to average");
  CHECK(error({{"p", p}}, 1) == "ema: the decay is 1, wanted from 0 to below 1");
  CHECK(error({{"p", Tensor::zeros({1}, DType::i64)}}) == "ema: 'p' is i64, wanted f32 or f64");
  CHECK(error({{"p", p}, {"q", Tensor::zeros({1}, DType::f64)}}) ==
        "ema: 'q' is f64 on cpu, 'p' f32 on cpu; they must be alike");
  Ema ema({{"p", p}}, 0.9);
  CHECK(error_of([&] { ema.load_state({}, "x"); }) == "x: 'p' is missing");
}
