#include "engine/core/frozen_weights.h"

#include <doctest/doctest.h>

#include <optional>
#include <thread>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/tensor.h"

using namespace tessera;

namespace {

// The kernel makes the doubled numbers of a weight, and counts how often it does.
struct Kernel {
  int calls = 0;

  double first_of(const Tensor& weight, const char* kind = "doubled") {
    const auto* const from = weight.data<double>();
    const int64_t columns = weight.rank() > 1 ? weight.dim(1) : 1;
    const MadeOfWeight<double> made(from, {kind, {weight.dim(0), columns}}, weight.elements(),
                                    [&](double* to) {
                                      ++calls;
                                      for (int64_t i = 0; i < weight.elements(); ++i) to[i] = 2 * from[i];
                                    });
    return made.data()[0];
  }
};

}  // namespace

TEST_CASE("what is made of a weight is kept while the weight is frozen, and made anew before and after") {
  const Tensor weight = Tensor::from({3, 4, 5, 6}, {4}, DType::f64),
               other = Tensor::from({7}, {1}, DType::f64);
  Kernel kernel;
  const auto calls = [&](const Tensor& of, const char* kind = "doubled") {
    const int before = kernel.calls;
    kernel.first_of(of, kind);
    return kernel.calls - before;
  };
  CHECK((calls(weight) == 1 && calls(weight) == 1));
  std::optional<FrozenWeights> outer(std::in_place, NamedTensors{{"weight", weight}});
  CHECK((calls(weight) == 1 && calls(weight) == 0 && kernel.first_of(weight) == 6));
  CHECK((calls(other) == 1 && calls(other) == 1));
  CHECK((calls(weight, "another kind") == 1 && calls(weight, "another kind") == 0));
  const Tensor square = weight.reshape({2, 2});
  CHECK((calls(square) == 1 && calls(square) == 0 && calls(weight) == 0));
  const Tensor part = weight.rows(0, 2), rest = weight.rows(2, 2);
  CHECK((calls(part) == 1 && calls(part) == 0 && calls(weight) == 0));
  CHECK((calls(rest) == 1 && calls(rest) == 0 && kernel.first_of(rest) == 10));
  {
    const FrozenWeights inner({{"weight", weight}, {"other", other}});
    CHECK((calls(weight) == 0 && calls(other) == 1 && calls(other) == 0));
    outer.reset();
    CHECK(calls(weight) == 0);
  }
  weight.data<double>()[0] = 1;
  CHECK((calls(weight) == 1 && kernel.first_of(weight) == 2));
}

TEST_CASE("an undefined tensor among the weights is passed over") {
  const Tensor weight = Tensor::from({3}, {1}, DType::f64);
  Kernel kernel;
  {
    const FrozenWeights frozen({{"weight", weight}, {"bias", {}}});
    CHECK((kernel.first_of(weight) == 6 && kernel.first_of(weight) == 6 && kernel.calls == 1));
  }
  weight.fill(4);
  CHECK((kernel.first_of(weight) == 8 && kernel.calls == 2));
}

TEST_CASE("what is made of something that was made of a frozen weight is kept as long") {
  const Tensor weight = Tensor::from({3}, {1}, DType::f64);
  int calls = 0;
  const auto twice = [&] {
    const MadeOfWeight<double> first(weight.data<double>(), {"first", {1}}, 1, [&](double* to) { *to = 4; });
    const MadeOfWeight<double> second(first.data(), {"second", {1}}, 1, [&](double* to) {
      ++calls;
      *to = 1 + *first.data();
    });
    return *second.data();
  };
  const size_t before = memory_stats(Device::cpu).in_use;
  {
    const FrozenWeights frozen({{"weight", weight}});
    CHECK((twice() == 5 && twice() == 5 && calls == 1));
    CHECK(memory_stats(Device::cpu).in_use > before);
  }
  CHECK(memory_stats(Device::cpu).in_use == before);
  CHECK((twice() == 5 && calls == 2));
}

TEST_CASE("threads that share frozen weights find what any of them has made") {
  const Tensor weight = Tensor::from({3, 4}, {2}, DType::f64);
  const FrozenWeights frozen({{"weight", weight}});
  std::vector<Kernel> kernels(4);
  {
    std::vector<std::jthread> threads;
    for (Kernel& kernel : kernels)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i)
          if (kernel.first_of(weight) != 6) kernel.calls = 1000;
      });
  }
  for (const Kernel& kernel : kernels) CHECK(kernel.calls <= 1);
}

TEST_CASE("a dry run leaves nothing that a later call would take for made") {
  const Tensor weight = Tensor::from({3}, {1}, DType::f64);
  const FrozenWeights frozen({{"weight", weight}});
  int calls = 0;
  const auto made = [&] {
    const MadeOfWeight<double> four(weight.data<double>(), {"four", {1}}, 1, [&](double* to) {
      ++calls;
      if (!DryRun::active()) *to = 4;
    });
    return DryRun::active() ? 0 : *four.data();
  };
  {
    const DryRun dry;
    made();
  }
  CHECK((made() == 4 && calls == 2));
}
