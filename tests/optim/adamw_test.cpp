#include "engine/optim/adamw.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "tests/io/temporary_folder.h"
#include "tests/optim/steps.h"

using namespace tessera;

namespace {

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.values(), y = b.values();
  REQUIRE(x.size() == y.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

// Repeats one run of PyTorch's in the fixture and compares every parameter after every step.
void check_run(const TensorFile& fixture, const std::string& run, const Json& settings, DType dtype) {
  const std::string wide = dtype == DType::f64 ? "64" : "";
  const double tolerance = dtype == DType::f64 ? 1e-12 : 5e-7;
  NamedTensors parameters;
  for (const char* name : {"bias", "scale", "weight"})
    parameters.emplace_back(name,
                            fixture.at("param." + std::string(name) + ".0").to(dtype).clone().require_grad());
  AdamW optimizer(make_groups(parameters, settings["weight_decay"].get<double>()),
                  {settings["betas"][0].get<double>(), settings["betas"][1].get<double>(),
                   settings["eps"].get<double>()});
  for (size_t step = 1; step <= 5; ++step) {
    const std::string after = "." + std::to_string(step);
    for (const auto& [name, p] : parameters) set_gradient(p, fixture.at("grad." + name + after));
    const Json& lr = settings.contains("lr_per_step") ? settings["lr_per_step"][step - 1] : settings["lr"];
    optimizer.step(lr.get<double>());
    for (const auto& [name, p] : parameters)
      CHECK(largest_difference(p, fixture.at(run + ".param" + wide + "." + name + after)) <= tolerance);
  }
  for (const auto& [name, value] : optimizer.state()) {
    const std::string parameter = name.substr(name.find('.') + 1) + ".5";
    if (name.starts_with("step.")) {
      CHECK(value.item() == 5);
      continue;
    }
    const Tensor& wanted =
        fixture.at(run + (name[0] == 'm' ? ".exp_avg" : ".exp_avg_sq") + wide + "." + parameter);
    for (size_t i = 0; i < wanted.values().size(); ++i)
      CHECK(value.values()[i] ==
            doctest::Approx(wanted.values()[i]).epsilon(dtype == DType::f64 ? 1e-12 : 1e-6));
  }
}

std::vector<double> after_steps(const NamedTensors& parameters, AdamW& optimizer, uint64_t seed) {
  for (uint64_t step = 0; step < 3; ++step) {
    set_gradients(parameters, seed + 100 * step);
    optimizer.step(1e-2);
  }
  return all_values(parameters);
}

}  // namespace

TEST_CASE("AdamW takes PyTorch's steps, in float and double, with and without decay and schedule") {
  const TensorFile fixture = read_safetensors(TESSERA_FIXTURES "/augment/adamw.safetensors");
  const Json runs = parse_json(fixture.metadata.at("runs"), "runs");
  CHECK(runs.size() == 3);
  for (const auto& run : runs.items())
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(run.key());
      CAPTURE(name(dtype));
      check_run(fixture, run.key(), run.value(), dtype);
    }
}

TEST_CASE("the first step is the learning rate against the gradient's sign; decay comes before it") {
  const Tensor p = leaf({1, -2, 3});
  AdamW optimizer(make_groups({{"p", p}}, 0.5), {0.9, 0.999, 0});
  set_gradient(p, Tensor::from({1e-6, -1e6, 3}, {3}, DType::f64));
  optimizer.step(0.1);
  const std::vector<double> wanted = {0.95 - 0.1, -1.9 + 0.1, 2.85 - 0.1};
  for (size_t i = 0; i < 3; ++i) CHECK(p.values()[i] == doctest::Approx(wanted[i]).epsilon(1e-14));
}

TEST_CASE("a parameter without a gradient is left alone, and its step is not counted") {
  const Tensor p = leaf({1, 2}), q = leaf({3});
  AdamW optimizer(make_groups({{"p", p}, {"q", q}}, 0.1));
  set_gradient(q, Tensor::from({1}, {1}, DType::f64));
  optimizer.step(0.1);
  CHECK(p.values() == std::vector<double>{1, 2});
  CHECK(q.values()[0] < 3);
  for (const auto& [name, value] : optimizer.state()) {
    if (name == "step.p") CHECK(value.item() == 0);
    if (name == "step.q") CHECK(value.item() == 1);
  }
  optimizer.zero_grad();
  CHECK_FALSE(q.grad().defined());
}

TEST_CASE("a group's factor and decay are its own") {
  const Tensor a = leaf({1}), b = leaf({1});
  AdamW optimizer(make_groups({{"a.weight", a}, {"a.bias", b}}, 0.5, {{"*.bias", 0.0, 0.1}}),
                  {0.9, 0.999, 0});
  for (const Tensor& p : {a, b}) set_gradient(p, Tensor::from({2}, {1}, DType::f64));
  optimizer.step(0.1);
  CHECK(a.item() == doctest::Approx(0.95 - 0.1).epsilon(1e-14));
  CHECK(b.item() == doctest::Approx(1 - 0.01).epsilon(1e-14));
}

TEST_CASE("the same bits on one thread and on many") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto [one, many] = on_one_and_many_threads([dtype] {
      const NamedTensors parameters = uneven_parameters(dtype);
      AdamW optimizer(make_groups(parameters, 0.05));
      return after_steps(parameters, optimizer, 1);
    });
    CHECK(one == many);
  }
}

TEST_CASE("saved to a file and loaded by another, it goes on with the same bits") {
  const NamedTensors parameters = uneven_parameters();
  AdamW first(make_groups(parameters, 0.05));
  after_steps(parameters, first, 1);
  const TemporaryFolder folder;
  const std::string path = folder / "state.safetensors";
  write_safetensors(path, first.state());
  NamedTensors copies;
  for (const auto& [name, p] : parameters) copies.emplace_back(name, p.clone().require_grad());
  AdamW second(make_groups(copies, 0.05));
  second.load_state(read_safetensors(path).tensors, path);
  CHECK(after_steps(parameters, first, 7) == after_steps(copies, second, 7));
}

TEST_CASE("a state that does not fit is refused, and nothing has changed") {
  const Tensor p = leaf({1, 2});
  AdamW optimizer(make_groups({{"fc.weight", p}}, 0));
  set_gradient(p, Tensor::from({1, 1}, {2}, DType::f64));
  optimizer.step(0.1);
  const std::vector<double> before = all_values(optimizer.state());
  const Tensor m = Tensor::zeros({2}, DType::f64), step = Tensor::zeros({1}, DType::i64);
  const auto error = [&](const NamedTensors& state) {
    return error_of([&] { optimizer.load_state(state, "x"); });
  };
  CHECK(error({{"m.fc.weight", m}, {"v.fc.weight", m}}) == "x: 'step.fc.weight' is missing");
  CHECK(error({{"m.fc.weigh", m}}) ==
        "x: 'm.fc.weigh' belongs to no state here; did you mean 'm.fc.weight'?");
  CHECK(error({{"m.fc.weight", Tensor::zeros({2})}}) == "x: 'm.fc.weight' is f32 [2], wanted f64 [2]");
  CHECK(error({{"m.fc.weight", m}, {"m.fc.weight", m}}) == "x: 'm.fc.weight' is given twice");
  CHECK(error({{"m.fc.weight", m}, {"v.fc.weight", m}, {"step.fc.weight", m}}) ==
        "x: 'step.fc.weight' is f64 [2], wanted i64 [1]");
  CHECK(all_values(optimizer.state()) == before);
  CHECK(error({{"m.fc.weight", m}, {"v.fc.weight", m}, {"step.fc.weight", step}}) == "");
  CHECK(all_values(optimizer.state()) == std::vector<double>(5, 0.0));
}

TEST_CASE("what no optimizer can work with is refused in its name") {
  const Tensor p = leaf({1});
  const auto error = [](const NamedTensors& parameters) {
    return error_of([&] { AdamW(make_groups(parameters, 0)); });
  };
  CHECK(error({}) == "adamw: there are no parameters");
  CHECK(error({{"p", Tensor::zeros({1})}}) == "adamw: 'p' has no gradient; call require_grad()");
  CHECK(error({{"p", p}, {"q", p}}) == "adamw: 'q' is given twice");
  CHECK(error({{"p", p}, {"p", leaf({1})}}) == "adamw: 'p' is given twice");
  CHECK(error({{"p", leaf({1}, DType::bf16)}}).find("adamw: 'p' is bf16; steps are too small") == 0);
  CHECK(error({{"p", p}, {"q", leaf({1}, DType::f32)}}) ==
        "adamw: 'q' is f32 on cpu, 'p' f64 on cpu; they must be alike");
  CHECK(error_of([&] {
          AdamW(make_groups({{"p", p}}, 0), {1.0, 0.999, 1e-8});
        }) == "adamw: beta is 1, wanted from 0 to below 1");
  CHECK(error_of([&] {
          AdamW(make_groups({{"p", p}}, 0), {0.9, 0.999, -1});
        }) == "adamw: eps is -1, wanted 0 or more");
  AdamW optimizer(make_groups({{"p", p}}, 0));
  CHECK(error_of([&] { optimizer.step(-1); }) == "adamw: the learning rate is -1, wanted 0 or more");
  CHECK(error_of([&] { optimizer.step(NAN); }).find("adamw: the learning rate is nan") == 0);
}
