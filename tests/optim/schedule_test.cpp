#include "engine/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/io/json.h"
#include "tests/optim/steps.h"

using namespace tessera;

namespace {

// A warm-up from `lowest` to `highest`, and half a cosine back.
Schedule warmup_cosine(double highest, double lowest, int64_t warmup, int64_t iterations) {
  return Schedule(
      {.highest = highest, .first = lowest, .last = lowest, .warmup = warmup, .iterations = iterations});
}

Schedule constant(double highest) {
  return Schedule({.highest = highest, .first = highest, .last = highest, .decay = Schedule::Decay::none});
}

Schedule schedule_of(const Json& run) {
  const int64_t epoch = run["iterations_per_epoch"].get<int64_t>();
  return warmup_cosine(run["max_lr"].get<double>(), run["min_lr"].get<double>(),
                       run["warmup_epochs"].get<int64_t>() * epoch, run["epochs"].get<int64_t>() * epoch);
}

void check_lr(const Schedule& schedule, int64_t k, double wanted) {
  CAPTURE(k);
  CHECK(std::abs(schedule.lr(k) - wanted) <= 1e-15 * wanted);
}

}  // namespace

TEST_CASE("warm-up and cosine are the reference's, at every iteration") {
  const Json golden = read_json(TESSERA_FIXTURES "/augment/schedule.json");
  CHECK(golden["cases"].size() == 4);
  for (const Json& run : golden["cases"]) {
    const Schedule schedule = schedule_of(run);
    for (size_t k = 0; k < run["lr"].size(); ++k)
      check_lr(schedule, static_cast<int64_t>(k), run["lr"][k].get<double>());
  }
  CHECK(golden["full_length"].size() > 0);
  for (const Json& run : golden["full_length"])
    for (const Json& point : run["points"])
      check_lr(schedule_of(run), point[0].get<int64_t>(), point[1].get<double>());
}

TEST_CASE("the ends") {
  const Schedule schedule = warmup_cosine(1, 0.1, 10, 30);
  CHECK(schedule.lr(0) == 0.1);
  CHECK(schedule.lr(10) == 1);
  CHECK(schedule.lr(20) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(schedule.lr(30) == 0.1);
  CHECK(schedule.lr(1000) == 0.1);
  CHECK(warmup_cosine(1, 0.1, 10, 10).lr(9) == doctest::Approx(0.91).epsilon(1e-15));
  CHECK(warmup_cosine(1, 0.1, 0, 0).lr(0) == 0.1);
  CHECK(constant(0.3).lr(0) == 0.3);
  CHECK(constant(0.3).lr(1000) == 0.3);
}

TEST_CASE("a warm-up from one rate, a decay to another, and the rest of the run there") {
  using Decay = Schedule::Decay;
  const Schedule cosine({.highest = 1, .first = 0.2, .last = 0.1, .warmup = 10, .iterations = 30});
  CHECK(cosine.lr(0) == 0.2);
  CHECK(cosine.lr(5) == doctest::Approx(0.6).epsilon(1e-15));
  CHECK(cosine.lr(10) == 1);
  CHECK(cosine.lr(20) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(cosine.lr(30) == 0.1);
  CHECK(cosine.lr(50) == 0.1);
  const Schedule linear(
      {.highest = 1, .first = 0, .last = 0.2, .warmup = 10, .iterations = 30, .decay = Decay::linear});
  CHECK(linear.lr(5) == 0.5);
  CHECK(linear.lr(10) == 1);
  CHECK(linear.lr(15) == doctest::Approx(0.8).epsilon(1e-15));
  CHECK(linear.lr(30) == 0.2);
  const Schedule level({.highest = 1, .first = 0.5, .warmup = 2, .iterations = 2, .decay = Decay::none});
  CHECK(level.lr(1) == 0.75);
  CHECK(level.lr(1000) == 1);
}

TEST_CASE("schedules that make no sense are refused") {
  CHECK(error_of([] { warmup_cosine(0.1, 1, 0, 1); }).find("schedule: a learning rate from 1 to 0.1") == 0);
  CHECK(error_of([] { constant(-1); }).find("schedule: a learning rate from -1 to -1") == 0);
  CHECK(error_of([] { constant(NAN); }).find("schedule: a learning rate from nan") == 0);
  CHECK(error_of([] { warmup_cosine(1, 0, 11, 10); }) == "schedule: 11 iterations of warm-up in a run of 10");
}
