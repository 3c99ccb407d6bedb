#include "engine/optim/sgd.h"

#include <doctest/doctest.h>

#include "tests/optim/steps.h"

using namespace tessera;

namespace {

// p after each of three steps with the gradients 1, -2, 0.5, from p = 1, at rates 0.1, 0.1, 0.2.
std::vector<double> path(double weight_decay, const Sgd::Options& options) {
  const Tensor p = leaf({1});
  Sgd optimizer(make_groups({{"p", p}}, weight_decay), options);
  std::vector<double> path;
  const double gradients[] = {1, -2, 0.5}, rates[] = {0.1, 0.1, 0.2};
  for (int i = 0; i < 3; ++i) {
    set_gradient(p, Tensor::from({gradients[i]}, {1}, DType::f64));
    optimizer.step(rates[i]);
    path.push_back(p.item());
  }
  return path;
}

void check_near(const std::vector<double>& values, const std::vector<double>& wanted) {
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(wanted[i]).epsilon(1e-14));
}

}  // namespace

TEST_CASE("plain descent follows the gradient; decay is part of it") {
  check_near(path(0, {}), {0.9, 1.1, 1.0});
  check_near(path(0.5, {}), {1 - 0.1 * 1.5, 0.85 - 0.1 * (-2 + 0.425), 1.0075 - 0.2 * (0.5 + 0.50375)});
}

TEST_CASE("momentum gathers gradients, Nesterov's looks one step ahead") {
  // b = 1, 0.9 - 2 = -1.1, -0.99 + 0.5 = -0.49
  check_near(path(0, {0.9, false}), {0.9, 1.01, 1.108});
  // d + 0.9 b = 1.9, -2 - 0.99 = -2.99, 0.5 - 0.441 = 0.059
  check_near(path(0, {0.9, true}), {0.81, 1.109, 1.0972});
}

TEST_CASE("the state is the buffers, and none without momentum") {
  const Tensor p = leaf({1, 2});
  CHECK(Sgd(make_groups({{"p", p}}, 0)).state().empty());
  Sgd optimizer(make_groups({{"p", p}}, 0), {0.5, false});
  set_gradient(p, Tensor::from({3, 4}, {2}, DType::f64));
  optimizer.step(0.1);
  REQUIRE(optimizer.state().size() == 1);
  CHECK(optimizer.state()[0].first == "b.p");
  CHECK(optimizer.state()[0].second.values() == std::vector<double>{3, 4});
  optimizer.load_state({{"b.p", Tensor::from({1, 1}, {2}, DType::f64)}}, "x");
  optimizer.step(0);
  CHECK(optimizer.state()[0].second.values() == std::vector<double>{3.5, 4.5});
}

TEST_CASE("the same bits on one thread and on many") {
  for (const Sgd::Options options : {Sgd::Options{0, false}, {0.9, false}, {0.9, true}}) {
    const auto [one, many] = on_one_and_many_threads([&] {
      const NamedTensors parameters = uneven_parameters();
      Sgd optimizer(make_groups(parameters, 1e-4), options);
      for (uint64_t step = 0; step < 3; ++step) {
        set_gradients(parameters, step);
        optimizer.step(0.1);
      }
      return all_values(parameters);
    });
    CHECK(one == many);
  }
}

TEST_CASE("options that make no sense are refused") {
  const std::vector<ParameterGroup> groups = make_groups({{"p", leaf({1})}}, 0);
  CHECK(error_of([&] { Sgd(groups, {1, false}); }) == "sgd: momentum is 1, wanted from 0 to below 1");
  CHECK(error_of([&] { Sgd(groups, {0, true}); }) == "sgd: nesterov needs a momentum above 0");
}
