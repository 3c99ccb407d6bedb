#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tessera {

class Trainer;

// The learning-rate range test (Smith, "Cyclical learning rates for training neural networks", 2017): steps
// of an untrained model while the rate grows from `lowest` to `highest` by the same factor each time.
struct RateSweep {
  double lowest = 1e-7, highest = 10;
  int64_t steps = 100;
};

struct RateCurve {
  std::vector<double> rates, losses, smoothed;  // as far as the sweep came
  bool diverged = false;                        // it ended early
  // Places in them, -1 where the loss never fell: where the smoothed loss is lowest, and where before that it
  // falls fastest, by the logarithm of the rate: the rate to train with.
  int64_t lowest = -1, steepest = -1;
};

// Mean of the values, those k places away weighed by decay^k: unlike a running mean, without a lag.
std::vector<double> smooth(const std::vector<double>& values, double decay);

// Finds `lowest` and `steepest` of a curve whose losses are given, and smooths them.
void read_curve(RateCurve& curve);

// Trains with growing rates until the loss is four times its best, or not finite. The trainer's weights are
// of no use afterwards.
RateCurve sweep_rates(Trainer& trainer, const RateSweep& sweep);

// tessera train --find-lr: sweeps, prints the curve and the suggestion, and draws it in find-lr.html of
// `folder`, which is made.
void find_lr(Trainer& trainer, const std::filesystem::path& folder, bool json);

}  // namespace tessera
