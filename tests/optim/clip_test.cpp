#include "engine/optim/clip.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/optim/steps.h"

using namespace tessera;

namespace {

std::vector<Tensor> values_of(const NamedTensors& parameters) {
  std::vector<Tensor> values;
  for (const auto& [name, p] : parameters) values.push_back(p);
  return values;
}

}  // namespace

TEST_CASE("the norm is that of all gradients together, and clipping brings it down to the limit") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const std::vector<Tensor> parameters = {leaf({1, 1}, dtype), leaf({1}, dtype), leaf({1}, dtype)};
    set_gradient(parameters[0], Tensor::from({2, -4}, {2}));
    set_gradient(parameters[2], Tensor::from({4}, {1}));
    CHECK(gradient_norm(parameters) == 6);
    CHECK(clip_by_norm(parameters, 7) == 6);
    CHECK(parameters[0].grad().values() == std::vector<double>{2, -4});
    CHECK(clip_by_norm(parameters, 1.5) == 6);
    CHECK(parameters[0].grad().values() == std::vector<double>{0.5, -1});
    CHECK(parameters[2].grad().values() == std::vector<double>{1});
    CHECK_FALSE(parameters[1].grad().defined());
    CHECK(gradient_norm(parameters) == 1.5);
  }
}

TEST_CASE("without any gradient the norm is 0") {
  CHECK(gradient_norm({}) == 0);
  CHECK(clip_by_norm({leaf({1})}, 1) == 0);
}

TEST_CASE("gradients that are not finite are told and not touched") {
  for (const double bad : {double(NAN), double(INFINITY)}) {
    const std::vector<Tensor> parameters = {leaf({1, 1}, DType::f32)};
    set_gradient(parameters[0], Tensor::from({bad, 4}, {2}));
    CHECK_FALSE(std::isfinite(clip_by_norm(parameters, 1)));
    CHECK(parameters[0].grad().values()[1] == 4);
  }
}

TEST_CASE("large floats do not overflow") {
  const std::vector<Tensor> parameters = {leaf({1, 1}, DType::f32)};
  set_gradient(parameters[0], Tensor::from({3e38, -3e38}, {2}));
  CHECK(gradient_norm(parameters) == doctest::Approx(std::sqrt(2.0) * 3e38).epsilon(1e-6));
}

TEST_CASE("the same bits on one thread and on many, and the norm is right over many chunks") {
  const NamedTensors parameters = uneven_parameters();
  const auto [one, many] = on_one_and_many_threads([&] {
    set_gradients(parameters, 3);
    const double norm = clip_by_norm(values_of(parameters), 0.5);
    std::vector<double> all = {norm};
    for (const auto& [name, p] : parameters)
      for (const double g : p.grad().values()) all.push_back(g);
    return all;
  });
  CHECK(one == many);
  set_gradients(parameters, 3);
  double squares = 0;
  for (const auto& [name, p] : parameters)
    for (const double g : p.grad().values()) squares += g * g;
  CHECK(one[0] == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  CHECK(one.size() > 70000);
}

TEST_CASE("a limit of 0 is refused") {
  CHECK(error_of([] { clip_by_norm({}, 0); }) == "clip: the largest norm is 0, wanted more than 0");
  CHECK(error_of([] { clip_by_norm({}, NAN); }).find("clip: the largest norm is nan") == 0);
}

TEST_CASE("from a bad norm on steps are left out, until it is seen to") {
  const Tensor p = leaf({1, 1});
  const Tensor norm = Tensor::zeros({3}, DType::f64);
  const auto clip = [&](std::initializer_list<double> gradient) {
    set_gradient(p, Tensor::from(gradient, {2}));
    clip_on_device({p}, 1, 100, norm);
    return norm.values();
  };
  CHECK(clip({3, 4}) == std::vector<double>{5, 5, 0});
  CHECK(p.grad().values()[0] == doctest::Approx(0.6));
  CHECK(std::isnan(clip({300, 0})[1]));
  CHECK(norm.values()[2] == 1);
  CHECK(std::isnan(clip({3, 4})[1]));
  CHECK(norm.values()[0] == 5);
  norm.fill(0);
  CHECK(clip({3, 4}) == std::vector<double>{5, 5, 0});
}
