#include "models/diffusion.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/noise.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

Tensor times(std::vector<int64_t> t) {
  const auto count = static_cast<int64_t>(t.size());
  return Tensor::from(t, {count});
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.values(), y = b.values();
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

}  // namespace

TEST_CASE("schedules: linear as DDPM has it, cosine as improved DDPM") {
  const NoiseSchedule linear(1000);
  CHECK(linear.beta[0] == doctest::Approx(1e-4).epsilon(1e-10));
  CHECK(linear.beta[999] == doctest::Approx(0.02).epsilon(1e-10));
  CHECK(linear.abar[0] == doctest::Approx(0.9999));
  CHECK(linear.abar[999] == doctest::Approx(4.0358e-5).epsilon(1e-4));
  CHECK(linear.log_variance[0] == linear.log_variance[1]);
  const NoiseSchedule cosine(1000, Betas::cosine);
  CHECK(cosine.abar[499] == doctest::Approx(0.4938).epsilon(1e-3));  // half the image is left half-way
  CHECK(cosine.beta[999] == doctest::Approx(0.999));
  const NoiseSchedule chain(1000, Betas::linear, spaced_times(1000, 10));
  CHECK(chain.abar[9] == linear.abar[999]);
  CHECK(chain.previous[9] == linear.abar[static_cast<size_t>(chain.times[8])]);
  const auto refusal = [](int64_t steps, const std::vector<int64_t>& times) {
    return error_of([&] { NoiseSchedule(steps, Betas::cosine, times); });
  };
  CHECK(refusal(1, {}) == "diffusion: a chain of 1 steps; at least 2 are wanted");
  CHECK(refusal(10, {3}) == "diffusion: a chain of one step; at least 2 are wanted");
  CHECK(refusal(10, {3, 10}) == "diffusion: time 10 of a schedule of 10 steps");
}

TEST_CASE("spaced times reach both ends, and halves go to even ones") {
  CHECK(spaced_times(1000, 2) == std::vector<int64_t>{0, 999});
  CHECK(spaced_times(10, 3) == std::vector<int64_t>{0, 4, 9});   // 4.5
  CHECK(spaced_times(12, 3) == std::vector<int64_t>{0, 6, 11});  // 5.5
  CHECK(spaced_times(4, 4) == std::vector<int64_t>{0, 1, 2, 3});
  for (const int64_t count : {1, 11})
    CHECK(error_of([&] { spaced_times(10, count); }) ==
          "diffusion: " + std::to_string(count) +
              " of 10 steps; at least 2 are wanted, and no more than there are");
}

TEST_CASE("an image, its noise and the noisy image each follow from the other two") {
  const NoiseSchedule s(100);
  const Tensor x0 = random_tensor({3, 2, 4, 4}, 1), noise = random_tensor({3, 2, 4, 4}, 2),
               t = times({0, 50, 99});
  const Tensor x = add_noise(s, x0, t, noise);
  CHECK(largest_difference(predict_x0(s, x, t, noise), x0) < 1e-9);
  CHECK(largest_difference(predict_noise(s, x, t, x0), noise) < 1e-9);
  // The first step goes all the way to x0.
  CHECK(largest_difference(posterior_mean(s, x0, x, times({0, 0, 0})), x0) < 1e-12);
  CHECK(log_variance(s, {}, t, x).values()[1] == doctest::Approx(std::log(s.beta[50])));
}

TEST_CASE("the bound is zero where the network is right, and its gradient is that of central differences") {
  const NoiseSchedule s(50);
  const Shape shape{2, 1, 2, 2};
  const Tensor x0 = random_tensor(shape, 3), noise = random_tensor(shape, 4), t = times({20, 49});
  const Tensor x = add_noise(s, x0, t, noise);
  std::vector<double> right;  // the noise itself, then v = -1, the posterior's own variance
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 4; ++i) right.push_back(noise.data<double>()[b * 4 + i]);
    for (int64_t i = 0; i < 4; ++i) right.push_back(-1);
  }
  CHECK(diffusion_loss(s, Tensor::from(right, {2, 2, 2, 2}, DType::f64), x0, x, t, noise).item() ==
        doctest::Approx(0).epsilon(1e-9));

  // Images at their first step, with numbers at both open ends and between.
  const Tensor edges = Tensor::from({-1, 1, 0.3, -0.4, 0.1, -0.2, 0.5, 0.9}, shape, DType::f64);
  const Tensor first = times({0, 20}), seen = add_noise(s, edges, first, noise);
  Tensor out = random_tensor({2, 2, 2, 2}, 5).require_grad();
  Tape tape;
  tape.backward(diffusion_loss(s, out, edges, seen, first, noise));
  const auto loss_at = [&](int64_t i, double step) {
    Tensor moved = out.detach().clone();
    moved.data<double>()[i] += step;
    return diffusion_loss(s, moved, edges, seen, first, noise).item();
  };
  for (const int64_t i : {4, 5, 6, 7, 12, 13}) {  // v alone: the bound has no gradient into the noise
    CAPTURE(i);
    const double slope = (loss_at(i, 1e-5) - loss_at(i, -1e-5)) / 2e-5;
    CHECK(out.grad().data<double>()[i] == doctest::Approx(slope).epsilon(1e-5));
  }
  const std::vector<double> answer = out.values(), wanted = noise.values();
  for (const int64_t i : {0, 3, 9})  // of the noise, that of the mean squared error alone: 2 (a - b) / 8
    CHECK(out.grad().data<double>()[i] ==
          doctest::Approx((answer[static_cast<size_t>(i)] - wanted[static_cast<size_t>(i / 8 * 4 + i % 8)]) /
                          4));
}

TEST_CASE("both samplers reach the image that an oracle network predicts") {
  const Tensor image = random_tensor({2, 3, 4, 4}, 6), start = random_tensor({2, 3, 4, 4}, 7);
  const NoiseSchedule s(200);
  int asked = 0;
  const Denoiser oracle{[&](const Tensor& x, const Tensor& t, const Tensor&) {
                          ++asked;
                          return predict_noise(s, x, t, image);
                        },
                        200, Betas::linear, 5};
  uint64_t key = 0;
  const auto draw = [&] { return normal_noise(start.shape(), ++key, DType::f64); };
  const Tensor labels = times({0, 1});
  for (const DiffusionSampler sampler : {DiffusionSampler::ddim, DiffusionSampler::ddpm})
    CHECK(largest_difference(sample(oracle, start, labels, {.sampler = sampler, .steps = 20}, draw), image) <
          1e-9);
  CHECK(asked == 40);
  CHECK(key == 19);  // DDPM draws at all steps but the last, DDIM never
  const Tensor clipped =
      sample(oracle, start, labels,
             {.sampler = DiffusionSampler::ddpm, .steps = 10, .guidance = 3, .clip = true}, draw);
  CHECK(asked == 60);
  for (size_t i = 0; i < clipped.values().size(); ++i)
    CHECK(clipped.values()[i] == doctest::Approx(std::clamp(image.values()[i], -1.0, 1.0)));
}

TEST_CASE("guidance extrapolates from the noise without a label past the noise with one") {
  const auto says = [](const Tensor& x, const Tensor&, const Tensor& labels) {
    return Tensor::full(x.shape(), labels.integers()[0] == 9 ? 1 : 2, DType::f64);
  };
  const Denoiser network{says, 10, Betas::cosine, 9};
  const Tensor start = random_tensor({1, 1, 2, 2}, 1);
  // 1 + 4 (2 - 1) = 5: the same as a network that answers 5
  const Denoiser five{
      [](const Tensor& x, const Tensor&, const Tensor&) { return Tensor::full(x.shape(), 5, DType::f64); },
      10, Betas::cosine, -1};
  SampleOptions options{.sampler = DiffusionSampler::ddim, .steps = 4, .guidance = 4};
  const Tensor guided = sample(network, start, times({0}), options, {});
  options.guidance = 1;
  CHECK(largest_difference(guided, sample(five, start, times({0}), options, {})) < 1e-12);
  options.guidance = 2;
  CHECK_THROWS_WITH_AS(sample(five, start, times({0}), options, {}), doctest::Contains("label_dropout"),
                       Error);
  options.steps = 11;
  CHECK(error_of([&] { sample(network, start, times({0}), options, {}); }).find("11 of 10 steps") !=
        std::string::npos);
}
