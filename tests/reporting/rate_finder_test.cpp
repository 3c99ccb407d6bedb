#include "apps/reporting/rate_finder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/commands/program.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

RateCurve curve_of(int64_t count, double (*loss)(double log_rate)) {
  RateCurve curve;
  for (int64_t i = 0; i < count; ++i) {
    const double log_rate = -7 + 8.0 * static_cast<double>(i) / static_cast<double>(count - 1);
    curve.rates.push_back(std::pow(10, log_rate));
    curve.losses.push_back(loss(log_rate));
  }
  analyse_curve(curve);
  return curve;
}

const std::string tiny =
    "train --find-lr --dataset shapes --image-size 16 --model vit --batch 16 --threads 1"
    " --set data.train_images=64 --set data.validation_images=10 --set model.dim=16 --set model.depth=1"
    " --set 'model.attention={\"heads\":2,\"head_dim\":8}' ";

}  // namespace

TEST_CASE("smoothing keeps a constant, and does not lag") {
  for (const double x : smooth(std::vector<double>(9, 2.5), 0.8)) CHECK(x == doctest::Approx(2.5));
  std::vector<double> peak(9, 0);
  peak[4] = 1;
  const std::vector<double> smoothed = smooth(peak, 0.5);
  CHECK(std::max_element(smoothed.begin(), smoothed.end()) - smoothed.begin() == 4);
  CHECK(smoothed[3] == doctest::Approx(smoothed[5]));
}

TEST_CASE("the suggestion is a tenth of the rate at which the loss has climbed a tenth of its fall") {
  // A fall by 2 about 10^-3, a valley, and a cliff that is 1 high at 10^0.
  const RateCurve curve =
      curve_of(200, [](double x) { return 2 - std::tanh(2 * (x + 3)) + std::exp(std::min(8 * x, 5.0)); });
  REQUIRE(curve.turn > curve.lowest);
  CHECK(std::log10(curve.rates[static_cast<size_t>(curve.lowest)]) < -0.5);
  CHECK(std::log10(curve.suggestion()) == doctest::Approx(-1.4).epsilon(0.03));
}

TEST_CASE("the early fall of a head's bias, without any learning, does not set the suggestion") {
  // A small ViT on shapes: a steep fall at 3e-5, a wide and noisy valley, and a cliff beyond 3e-2.
  const RateCurve curve = curve_of(100, [](double x) {
    return 2.55 - 0.13 * std::tanh(3 * (x + 4.5)) + 0.02 * std::sin(40 * x) + std::exp(6 * (x + 1));
  });
  CHECK(curve.suggestion() > 5e-4);
  CHECK(curve.suggestion() < 5e-3);
}

TEST_CASE("a loss that never turns suggests a tenth of the last rate, one that never falls nothing") {
  const RateCurve falling = curve_of(50, [](double x) { return 3 - x / 10; });
  CHECK(falling.suggestion() == doctest::Approx(falling.rates.back() / 10));
  for (const RateCurve& none :
       {curve_of(50, [](double x) { return 3 + x / 10; }), curve_of(2, [](double x) { return -x; })}) {
    CHECK(none.turn == -1);
    CHECK(none.suggestion() == 0);
  }
}

TEST_CASE("a sweep ends where the loss diverges, and repeats in every bit") {
  const SmallRun run = small_run({{"model", small_vit}, {"optimizer", {{"kind", "sgd"}}}});
  const auto sweep = [&run] {
    Trainer trainer(run.config, run.dataset, {});
    return sweep_rates(trainer, {.lowest = 1e-4, .highest = 1e8, .steps = 60});
  };
  const RateCurve curve = sweep();
  CHECK(curve.diverged);
  CHECK(curve.rates.size() < 60);
  CHECK(curve.rates.front() == doctest::Approx(1e-4));
  CHECK(curve.losses.size() == curve.rates.size());
  CHECK(sweep().losses == curve.losses);
}

TEST_CASE("train --find-lr prints the curve, suggests, draws, and leaves no run") {
  const TemporaryFolder folder;
  const std::string out = "--out " + (folder / "lr").string();
  const Said said = tessera_program(tiny + out);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("smoothed") != std::string::npos);
  CHECK(said.out.find("Suggestion: --lr ") != std::string::npos);
  const std::string plot = bytes_of(folder / "lr/find-lr.html");
  CHECK(plot.find("<svg") != std::string::npos);
  CHECK(plot.find("learning rate") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "lr/config.json"));

  const Said again = tessera_program(tiny + out + " --json");
  REQUIRE(again.code == 0);
  const auto result = again.json();
  CHECK(result["suggestion"].get<double>() > 1e-7);
  CHECK(result["suggestion"].get<double>() < 10);
  CHECK(result["rows"].size() > 20);
  CHECK(result["plot"] == (folder / "lr/find-lr.html").string());
}

TEST_CASE("what does not go with --find-lr is refused") {
  for (const std::string other : {"--resume", "--stop-after 3"}) {
    const Said said = tessera_program(tiny + other);
    CHECK(said.code == 2);
    CHECK(said.complains_of("--find-lr"));
  }
}
