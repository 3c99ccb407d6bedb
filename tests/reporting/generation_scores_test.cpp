#include "apps/reporting/generation_scores.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/parallel.h"
#include "engine/core/random.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

NormalFit diagonal(std::vector<double> mean, const std::vector<double>& deviations) {
  const size_t n = mean.size();
  NormalFit fit{std::move(mean), std::vector<double>(n * n)};
  for (size_t i = 0; i < n; ++i) fit.covariance[i * n + i] = deviations[i] * deviations[i];
  return fit;
}

Tensor rows(const std::vector<double>& values, int64_t columns) {
  return Tensor::from(values, {std::ssize(values) / columns, columns}, DType::f64);
}

}  // namespace

TEST_CASE("the Frechet distance of diagonal normals is |m1 - m2|^2 + |s1 - s2|^2") {
  const NormalFit a = diagonal({1, -2, 0}, {1, 2, 0.5}), b = diagonal({0, 1, 0.5}, {3, 0, 0.25});
  CHECK(frechet_distance(a, b) == doctest::Approx(1 + 9 + 0.25 + 4 + 4 + 0.0625).epsilon(1e-12));
  CHECK(frechet_distance(b, a) == doctest::Approx(frechet_distance(a, b)).epsilon(1e-12));
  CHECK(std::abs(frechet_distance(a, a)) < 1e-12);
  // In two dimensions tr((C1 C2)^(1/2)) = sqrt(tr(C1 C2) + 2 sqrt(det(C1 C2))).
  const NormalFit c{{0, 0}, {2, 0.5, 0.5, 1}}, d{{0, 0}, {1, -0.3, -0.3, 3}};
  const double trace = 2 * 1 + 2 * 0.5 * -0.3 + 1 * 3, determinant = (2 - 0.25) * (3 - 0.09);
  CHECK(frechet_distance(c, d) ==
        doctest::Approx(3 + 4 - 2 * std::sqrt(trace + 2 * std::sqrt(determinant))).epsilon(1e-12));
  CHECK(error_of([&] { frechet_distance(a, c); }).find("of one network") != std::string::npos);
}

TEST_CASE("features are fitted by their mean and the covariance of N - 1, on any number of threads") {
  const NormalFit fit = fit_normal(rows({1, 10, 3, 10, 5, 40}, 2));
  CHECK(fit.mean == std::vector<double>{3, 20});
  CHECK(fit.covariance == std::vector<double>{4, 30, 30, 300});
  const Tensor many = random_tensor({700, 33}, 1);
  set_threads(1);
  const NormalFit one = fit_normal(many);
  set_threads(0);
  const NormalFit all = fit_normal(many);
  CHECK((one.mean == all.mean && one.covariance == all.covariance));
  CHECK(error_of([] { fit_normal(rows({1, 2}, 2)); }).find("at least 2") != std::string::npos);
  CHECK(error_of([] { fit_normal(rows({1, 2, NAN, 4}, 2)); }).find("nan in row 1") != std::string::npos);
}

TEST_CASE("fewer features than dimensions have a singular covariance, and still a distance") {
  const NormalFit few = fit_normal(random_tensor({5, 40}, 2)), other = fit_normal(random_tensor({6, 40}, 3));
  CHECK(std::abs(frechet_distance(few, few)) < 1e-5);
  CHECK(frechet_distance(few, other) > 1);
}

TEST_CASE("the inception score is 1 for equal rows, K for K certain classes, and a mean over splits") {
  CHECK(inception_score(rows({0.2, 0.8, 0.2, 0.8}, 2), 1).mean == doctest::Approx(1));
  CHECK(inception_score(rows({1, 0, 0, 0, 1, 0, 0, 0, 1}, 3), 1).mean == doctest::Approx(3));
  const InceptionScore split = inception_score(rows({1, 0, 0, 1, 1, 0, 1, 0}, 2), 2);  // 2, then 1
  CHECK(split.mean == doctest::Approx(1.5));
  CHECK(split.deviation == doctest::Approx(0.5));
  const Tensor soft = softmax_rows(rows({1000, 1000, 0, std::log(3)}, 2));
  CHECK(soft.values()[0] == 0.5);
  CHECK(soft.values()[3] == doctest::Approx(0.75));
  CHECK(error_of([] {
          inception_score(rows({1, 1}, 2), 1);
        }).find("is no distribution") != std::string::npos);
  CHECK(error_of([] {
          inception_score(rows({1, 0}, 2), 2);
        }).find("2 splits of 1 rows; wanted 1 to 1,") != std::string::npos);
}

TEST_CASE("precision and recall: points on a line, and clouds that share half of their points") {
  // Each point's nearest neighbour is 1 away in the reference, 2 away in the samples.
  const Tensor reference = rows({0, 1, 2, 3}, 1), samples = rows({0.5, 2.5, 10, 12}, 1);
  const auto [precision, recall] = precision_recall(reference, samples, 1);
  CHECK(precision == 0.5);  // 0.5 and 2.5 lie between; 10 and 12 are far
  CHECK(recall == 1);
  const Tensor cloud = random_tensor({1500, 6}, 4);  // more than are compared at once
  const PrecisionRecall same = precision_recall(cloud, cloud, 3);
  CHECK((same.precision == 1 && same.recall == 1));
  CHECK(error_of([&] { precision_recall(reference, samples, 4); }).find("4 neighbours among 4") !=
        std::string::npos);
}
