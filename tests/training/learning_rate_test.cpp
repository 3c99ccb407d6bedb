#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <sstream>

#include "tests/training/small_run.h"

using namespace tessera;

TEST_CASE("the learning rate of each step is that of its number, through warm-up, decay and cool-down") {
  const TemporaryFolder folder;
  const SmallRun run =
      small_run({{"model", small_vit},
                 {"epochs", 4},
                 {"optimizer", {{"lr", 0.01}}},
                 {"schedule",
                  {{"warmup_epochs", 1}, {"cooldown_epochs", 1}, {"warmup_lr", 0.004}, {"min_lr", 0.002}}}});
  CHECK(train_in(folder / "run", run) == Ending::finished);
  // Steps 0 to 2 warm up, 3 to 8 decay, 9 to 11 cool down; a row holds the rate of its epoch's last step.
  const auto cosine = [](double way) { return 0.002 + 0.008 * (1 + std::cos(std::numbers::pi * way)) / 2; };
  const double wanted[] = {0.004 + 0.006 * 2 / 3, cosine(2.0 / 6), cosine(5.0 / 6), 0.002};
  std::istringstream lines(bytes_of(folder / "run/metrics.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line.starts_with("epoch,step,lr,"));
  for (int epoch = 0; epoch < 4; ++epoch) {
    REQUIRE(std::getline(lines, line));
    std::istringstream cells(line);
    std::string number, step, lr;
    std::getline(std::getline(std::getline(cells, number, ','), step, ','), lr, ',');
    CAPTURE(epoch);
    CHECK(std::stoi(step) == 3 * (epoch + 1));
    CHECK(std::stod(lr) == doctest::Approx(wanted[epoch]).epsilon(1e-12));
  }
}
