#pragma once

#include <cstdint>

namespace tessera {

// The learning rate of every iteration k = 0, 1, ... of a run.
class Schedule {
 public:
  // M throughout.
  static Schedule constant(double M);

  // Warm-up, then half a cosine (Loshchilov and Hutter, 2017), from m to M over the first w of n iterations
  // and back to m:
  //   k < w: m + (M - m) k / w,  else m + (M - m) (1 + cos(pi (k - w) / (n - w))) / 2
  // Iteration 0 runs at m even if w is 0, as in the SPT and LSA paper's code, and all from n on do.
  // Fails unless 0 <= m <= M and 0 <= w <= n.
  static Schedule warmup_cosine(double M, double m, int64_t w, int64_t n);

  // How the learning rate falls after the warm-up.
  enum class Decay { none, linear, cosine };
  struct Options {
    double highest = 0;          // M
    double first = 0, last = 0;  // what the warm-up begins at, what the decay ends at and stays at
    int64_t warmup = 0;          // w
    int64_t iterations = 0;      // n, the decay's end
    Decay decay = Decay::cosine;
  };
  // The same in general: k < w: first + (M - first) k / w, then with r = (k - w) / (n - w) from 0 to 1
  //   linear: M + (last - M) r,   cosine: last + (M - last) (1 + cos(pi r)) / 2,   none: M for good
  // Fails unless 0 <= first, last <= M and 0 <= w <= n.
  explicit Schedule(const Options& options);

  double lr(int64_t k) const;

 private:
  Options options_;
};

}  // namespace tessera
