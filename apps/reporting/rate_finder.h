#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tessera {

class Trainer;

// The learning-rate range test (Smith, "Cyclical learning rates for training neural networks", 2017): an
// untrained model takes `steps` steps while the rate grows from `lowest` to `highest` by a constant factor.
struct RateSweep {
  double lowest = 1e-7, highest = 10;
  int64_t steps = 100;
};

struct RateCurve {
  std::vector<double> rates, losses, smoothed;  // one entry for each step that was taken
  bool diverged = false;                        // the sweep ended early
  // Indices: where the smoothed loss is lowest, and where behind that it has climbed back a tenth of its
  // fall, or the sweep ends. Both are -1 where the loss never fell.
  int64_t lowest = -1, turn = -1;

  // A tenth of the rate at the turn; 0 where there is none. The steepest fall would tell less: the first
  // rates that do anything move the head's bias to the classes' frequencies, which is a fall of the loss
  // without any learning, and a tenth or a hundredth of the rate that trains best.
  double suggestion() const { return turn < 0 ? 0 : rates[static_cast<size_t>(turn)] / 10; }
};

// Smooths in both directions: the mean of all values, those k places away weighed by decay^k. Unlike a
// running mean it has no lag.
std::vector<double> smooth(const std::vector<double>& values, double decay);

// Fills in `smoothed`, `lowest` and `turn` from the rates and losses.
void analyse_curve(RateCurve& curve);

// Trains with growing rates until the sweep ends, the loss is four times its best, or it is not finite. The
// trainer's weights are useless afterwards.
RateCurve sweep_rates(Trainer& trainer, const RateSweep& sweep);

// `tessera train --find-lr`: sweeps, prints the curve and the suggested rate, and draws the curve in
// find-lr.html of `folder`, which is created.
void find_lr(Trainer& trainer, const std::filesystem::path& folder, bool json);

}  // namespace tessera
