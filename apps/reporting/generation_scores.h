#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// How near drawn pictures are to real ones, from what an Inception network says of both. All in double.

// The normal distribution with the moments of some features.
struct NormalFit {
  std::vector<double> mean;        // [D]
  std::vector<double> covariance;  // [D, D]
};

// The mean and the covariance of features [N, D], with N - 1 in its denominator. Fails for fewer than two
// rows and for numbers that are not finite.
NormalFit fit_normal(const Tensor& features);

// The Frechet distance of two normal distributions (Dowson and Landau, 1982), FID for Inception's features
// (Heusel et al., 2017): |m1 - m2|^2 + tr(C1) + tr(C2) - 2 tr((C1 C2)^(1/2)). The last trace is the sum of
// the roots of the eigenvalues of C1^(1/2) C2 C1^(1/2), which is symmetric; eigenvalues that rounding made
// negative count as 0. Fails for distributions of different dimensions.
double frechet_distance(const NormalFit& a, const NormalFit& b);

struct InceptionScore {
  double mean = 0, deviation = 0;  // over the splits
};

// exp of the mean Kullback-Leibler divergence of each row p(y | x) from the mean of all rows p(y) (Salimans
// et al., 2016), for each of `splits` runs of consecutive rows; the deviation has `splits` in its
// denominator. `probabilities` [N, K]. Fails for fewer rows than splits, and for a row that is no
// distribution.
InceptionScore inception_score(const Tensor& probabilities, int64_t splits);

// The softmax of each row, in double. [N, K]
Tensor softmax_rows(const Tensor& logits);

// Of samples [M, D] and reference [N, D] (Kynkaanniemi et al., 2019). Precision is the share of samples that
// lie within the distance of some reference's k-th nearest neighbour in the reference from it; recall is the
// same with the two exchanged. A point is no neighbour of itself, but a copy of it is. Fails for k out of
// range and different dimensions.
struct PrecisionRecall {
  double precision = 0, recall = 0;
};
PrecisionRecall precision_recall(const Tensor& reference, const Tensor& samples, int64_t k);

}  // namespace tessera
