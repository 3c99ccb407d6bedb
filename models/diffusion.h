#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Diffusion (Ho et al., 2020; Nichol and Dhariwal, 2021) with any network that predicts the noise in an
// image. Times t count from 0 to T - 1. With abar_t = prod over s <= t of (1 - beta_s) and abar_{-1} = 1:
//
//   x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise
//   q(x_{t-1} | x_t, x_0) is normal with
//       mean      beta_t sqrt(abar_{t-1}) / (1 - abar_t) x_0
//                 + (1 - abar_{t-1}) sqrt(1 - beta_t) / (1 - abar_t) x_t
//       variance  beta_t (1 - abar_{t-1}) / (1 - abar_t)
//
// Images are [B, C, H, W], t [B] i64, one time per image.

/// linear: beta rises from 1e-4 to 0.02 for T = 1000; both ends are scaled by 1000 / T for another T. cosine:
/// abar_t is proportional to cos^2((t / T + 0.008) / 1.008 pi / 2), and no beta exceeds 0.999.
enum class Betas { linear, cosine };

/// The coefficients of a chain of steps, one entry per step, in double because 1 - abar cancels; they are
/// rounded to the images' type only when they multiply an image.
struct NoiseSchedule {
  /// The chain of all T = steps times; or the shorter chain over the increasing `its_times`. Fails for a
  /// chain of fewer than 2 steps and for times outside 0 .. T - 1.
  explicit NoiseSchedule(int64_t steps, Betas betas = Betas::linear, std::vector<int64_t> its_times = {});

  std::vector<int64_t> times;          ///< the time given to the network at each step
  std::vector<double> abar, previous;  ///< abar_t, abar_{t-1}
  std::vector<double> beta;
  std::vector<double> log_variance;  ///< of q; the first step, where it would be -inf, has the second's
};

/// `count` >= 2 times spread evenly from 0 to steps - 1, halves rounded to even. Fails for a count below 2 or
/// above steps.
std::vector<int64_t> spaced_times(int64_t steps, int64_t count);

Tensor add_noise(const NoiseSchedule& s, const Tensor& x0, const Tensor& t, const Tensor& noise);  ///< x_t
/// x_0 from x_t and its noise, and the noise from x_t and x_0.
Tensor predict_x0(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& noise);
Tensor predict_noise(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& x0);
Tensor posterior_mean(const NoiseSchedule& s, const Tensor& x0, const Tensor& x, const Tensor& t);
/// The log variance of the step from x_t, interpolated between that of q (v = -1) and log beta_t (v = 1); it
/// is log beta_t if the network learns no variance (v undefined).
Tensor log_variance(const NoiseSchedule& s, const Tensor& v, const Tensor& t, const Tensor& like);

/// The loss of `out` [B, C or 2 C, H, W], the network's answer for x = x_t: the mean squared error of the
/// noise, plus, if the network learns the variance (2 C channels), the variational bound in bits per
/// dimension, whose gradient reaches v alone. At t = 0 the bound is minus the log likelihood of x0, where
/// each value stands for the interval of +-1/255 around it and values beyond +-0.999 for an interval open to
/// infinity.
Tensor diffusion_loss(const NoiseSchedule& s, const Tensor& out, const Tensor& x0, const Tensor& x,
                      const Tensor& t, const Tensor& noise);

enum class DiffusionSampler {
  ddpm,
  ddim
};  ///< ancestral (Ho et al., 2020); deterministic (Song et al., 2021)

struct SampleOptions {
  DiffusionSampler sampler = DiffusionSampler::ddpm;
  int64_t steps = 250;  ///< of the T, evenly spaced
  double guidance = 1;  ///< classifier-free guidance (Ho and Salimans, 2022); 1 is none
  bool clip = false;    ///< clips every predicted x_0 to [-1, 1], the range of pixels
  /// One for each image, from which all its noise is drawn, so that it depends on no other image. Empty: the
  /// noise of all images together is drawn from the pass.
  std::vector<uint64_t> seeds = {};
};

/// The network as a sampler calls it.
struct Denoiser {
  /// x_t, times and labels [B] -> [B, C or 2 C, H, W]
  std::function<Tensor(const Tensor& x, const Tensor& times, const Tensor& labels)> predict;
  int64_t steps = 1000;
  Betas betas = Betas::linear;
  int64_t no_label = -1;  ///< the label that stands for none; -1: the network has none
};

/// Turns noise [B, C, H, W] into images of the classes `labels` [B], without recording a tape. draw() returns
/// the noise of a step of DDPM; DDIM needs none. Fails for guidance without a "no label", and for fewer than
/// 2 or more than T steps.
Tensor sample(const Denoiser& network, const Tensor& noise, const Tensor& labels,
              const SampleOptions& options, const std::function<Tensor()>& draw);

}  // namespace tessera
