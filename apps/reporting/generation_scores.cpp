#include "apps/reporting/generation_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/symmetric.h"

namespace tessera {

namespace {

using Numbers = std::vector<double>;

constexpr int64_t block = 1024;  // rows of a table of distances at once

size_t at(int64_t i) { return static_cast<size_t>(i); }

// The features as numbers, which must be a finite matrix.
Numbers matrix_of(const Tensor& features, const char* what) {
  check(features.rank() == 2 && features.elements() > 0, "score: ", what, " are ", features.shape(),
        ", wanted a matrix, a row a picture");
  Numbers values = features.values();
  for (size_t i = 0; i < values.size(); ++i)
    check(std::isfinite(values[i]), "score: ", what, " hold ", values[i], " in row ",
          static_cast<int64_t>(i) / features.dim(1));
  return values;
}

// op(a) b of square matrices [n, n].
Numbers product(const Numbers& a, bool transposed, const Numbers& b, int64_t n) {
  Numbers c(at(n * n));
  parallel_gemm<double>({n, n, n}, 1, {a.data(), n, transposed}, {b.data(), n}, 0, c.data(), n);
  return c;
}

// V^T diag(sqrt(values)) V, the root of a symmetric matrix whose eigenvectors are the rows of V.
Numbers root_of(const Numbers& matrix, int64_t n) {
  const SymmetricEigen eigen = symmetric_eigen(matrix, n, true);
  Numbers scaled = eigen.vectors;
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < n; ++i) scaled[at(k * n + i)] *= std::sqrt(std::max(eigen.values[at(k)], 0.0));
  return product(eigen.vectors, true, scaled, n);
}

// The means of the rows of a matrix. [columns]
Numbers mean_of(const double* rows, int64_t count, int64_t columns) {
  Numbers mean(at(columns));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < columns; ++j) mean[at(j)] += rows[i * columns + j];
  for (double& each : mean) each /= static_cast<double>(count);
  return mean;
}

// Points of a feature space and their squared lengths, shifted by `origin` so that distances keep their
// digits.
struct Points {
  Points(const Tensor& features, const char* what, const Numbers& origin)
      : count(features.dim(0)), dim(features.dim(1)), rows(matrix_of(features, what)), squares(at(count)) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < dim; ++j) {
        double& value = rows[at(i * dim + j)];
        value -= origin[at(j)];
        squares[at(i)] += value * value;
      }
  }

  int64_t count, dim;
  Numbers rows, squares;
};

// Calls f(i, squared distances of point i of a to all of b), on all threads.
template <class F> void each_distances(const Points& a, const Points& b, F&& f) {
  Numbers table(at(std::min(block, a.count) * b.count));
  for (int64_t first = 0; first < a.count; first += block) {
    const int64_t rows = std::min(block, a.count - first);
    parallel_gemm<double>({rows, b.count, a.dim}, -2, {a.rows.data() + first * a.dim, a.dim},
                          {b.rows.data(), b.dim, true}, 0, table.data(), b.count);
    parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const std::span<double> row(table.data() + i * b.count, at(b.count));
        for (int64_t j = 0; j < b.count; ++j)
          row[at(j)] = std::max(row[at(j)] + a.squares[at(first + i)] + b.squares[at(j)], 0.0);
        f(first + i, row);
      }
    });
  }
}

// The squared distance of each point to its k-th nearest neighbour.
Numbers radii_of(const Points& points, int64_t k) {
  Numbers radii(at(points.count));
  each_distances(points, points, [&](int64_t i, std::span<double> row) {
    row[at(i)] = std::numeric_limits<double>::infinity();
    std::nth_element(row.begin(), row.begin() + k - 1, row.end());
    radii[at(i)] = row[at(k - 1)];
  });
  return radii;
}

// The share of `points` that lie within the radius of some centre.
double covered(const Points& points, const Points& centres, const Numbers& radii) {
  std::vector<char> inside(at(points.count));
  each_distances(points, centres, [&](int64_t i, std::span<double> row) {
    for (size_t j = 0; j < row.size() && !inside[at(i)]; ++j) inside[at(i)] = row[j] <= radii[j];
  });
  return static_cast<double>(std::count(inside.begin(), inside.end(), 1)) / static_cast<double>(points.count);
}

}  // namespace

NormalFit fit_normal(const Tensor& features) {
  Numbers rows = matrix_of(features, "features");
  const int64_t count = features.dim(0), dim = features.dim(1);
  check(count >= 2, "score: one row of features has no covariance; at least 2 are wanted");
  NormalFit fit{mean_of(rows.data(), count, dim), Numbers(at(dim * dim))};
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < dim; ++j) rows[at(i * dim + j)] -= fit.mean[at(j)];
  parallel_gemm<double>({dim, dim, count}, 1 / static_cast<double>(count - 1), {rows.data(), dim, true},
                        {rows.data(), dim}, 0, fit.covariance.data(), dim);
  return fit;
}

double frechet_distance(const NormalFit& a, const NormalFit& b) {
  const int64_t n = std::ssize(a.mean);
  check(std::ssize(b.mean) == n && std::ssize(a.covariance) == n * n && std::ssize(b.covariance) == n * n,
        "score: features of ", n, " numbers beside features of ", b.mean.size(),
        "; both must be of one network");
  double distance = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double apart = a.mean[at(i)] - b.mean[at(i)];
    distance += apart * apart + a.covariance[at(i * n + i)] + b.covariance[at(i * n + i)];
  }
  const Numbers root = root_of(a.covariance, n);
  const Numbers middle = product(product(root, false, b.covariance, n), false, root, n);
  for (const double value : symmetric_eigen(middle, n, false).values)
    distance -= 2 * std::sqrt(std::max(value, 0.0));
  return distance;
}

InceptionScore inception_score(const Tensor& probabilities, int64_t splits) {
  const Numbers rows = matrix_of(probabilities, "probabilities");
  const int64_t count = probabilities.dim(0), classes = probabilities.dim(1);
  check(splits >= 1 && splits <= count, "score: ", splits, " splits of ", count, " rows; wanted 1 to ", count,
        ", so that each has a row (--splits N)");
  for (int64_t i = 0; i < count; ++i) {
    const double *row = rows.data() + i * classes, sum = std::accumulate(row, row + classes, 0.0);
    check(std::abs(sum - 1) < 1e-3 && *std::min_element(row, row + classes) >= 0, "score: row ", i,
          " of the probabilities is no distribution, its sum is ", sum,
          "; logits go under the name 'logits'");
  }
  Numbers scores;
  for (int64_t s = 0; s < splits; ++s) {
    const int64_t first = s * count / splits, last = (s + 1) * count / splits;
    const Numbers all = mean_of(rows.data() + first * classes, last - first, classes);
    double sum = 0;
    for (int64_t i = first; i < last; ++i)
      for (int64_t k = 0; k < classes; ++k)
        if (const double p = rows[at(i * classes + k)]; p > 0) sum += p * std::log(p / all[at(k)]);
    scores.push_back(std::exp(sum / static_cast<double>(last - first)));
  }
  InceptionScore score{mean_of(scores.data(), splits, 1)[0], 0};
  for (const double each : scores) score.deviation += (each - score.mean) * (each - score.mean);
  score.deviation = std::sqrt(score.deviation / static_cast<double>(splits));
  return score;
}

Tensor softmax_rows(const Tensor& logits) {
  Numbers rows = matrix_of(logits, "logits");
  const int64_t classes = logits.dim(1);
  for (auto row = rows.begin(); row != rows.end(); row += classes) {
    const double most = *std::max_element(row, row + classes);
    double sum = 0;
    for (auto value = row; value != row + classes; ++value) sum += * value = std::exp(*value - most);
    for (auto value = row; value != row + classes; ++value) *value /= sum;
  }
  return Tensor::from(rows, logits.shape(), DType::f64);
}

PrecisionRecall precision_recall(const Tensor& reference, const Tensor& samples, int64_t k) {
  check(reference.rank() == 2 && samples.rank() == 2 && reference.dim(1) == samples.dim(1),
        "score: features ", reference.shape(), " and ", samples.shape(), "; both must be of one network");
  check(k >= 1 && k < std::min(reference.dim(0), samples.dim(0)), "score: ", k, " neighbours among ",
        std::min(reference.dim(0), samples.dim(0)), " features; fewer than there are, at least 1");
  const Numbers origin = mean_of(matrix_of(reference, "features").data(), reference.dim(0), reference.dim(1));
  const Points real(reference, "features", origin), drawn(samples, "features", origin);
  return {covered(drawn, real, radii_of(real, k)), covered(real, drawn, radii_of(drawn, k))};
}

}  // namespace tessera
