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

  double lr(int64_t k) const;

 private:
  Schedule(double M, double m, int64_t w, int64_t n, bool cosine);

  double M_, m_;
  int64_t w_, n_;
  bool cosine_;
};

}  // namespace tessera
