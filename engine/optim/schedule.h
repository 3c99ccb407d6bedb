#pragma once

#include <cstdint>

namespace tessera {

/// The learning rate of iterations k = 0, 1, ... of a run: a linear warm-up, then a decay. With M = highest,
/// w = warmup, n = iterations and r = (k - w) / (n - w), iteration k runs at
///   k < w:   first + (M - first) k / w
///   linear:  M + (last - M) r
///   cosine:  last + (M - last) (1 + cos(pi r)) / 2     (Loshchilov and Hutter, 2017)
///   none:    M
/// Under a decay, iterations from n on run at `last`, and iteration 0 runs at `first` even if w is 0, as in
/// the code of the paper on SPT and LSA.
class Schedule {
 public:
  /// How the learning rate falls after the warm-up.
  enum class Decay { none, linear, cosine };
  struct Options {
    double highest = 0;
    double first = 0, last = 0;
    int64_t warmup = 0, iterations = 0;
    Decay decay = Decay::cosine;
  };

  /// Fails unless 0 <= first, last <= highest and 0 <= warmup <= iterations.
  explicit Schedule(const Options& options);

  double lr(int64_t k) const;

 private:
  Options options_;
};

}  // namespace tessera
