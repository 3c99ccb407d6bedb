#pragma once

#include <functional>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Diffusion (Ho et al., 2020; Nichol and Dhariwal, 2021) around any network that predicts the noise in an
// image. Times t count from 0 to T - 1. With abar_t = prod over s <= t of (1 - beta_s), abar_{-1} = 1:
//
//   x_t = sqrt(abar_t) x_0 + sqrt(1 - abar_t) noise
//   q(x_{t-1} | x_t, x_0) is normal with
//       mean      beta_t sqrt(abar_{t-1}) / (1 - abar_t) x_0
//                 + (1 - abar_{t-1}) sqrt(1 - beta_t) / (1 - abar_t) x_t
//       variance  beta_t (1 - abar_{t-1}) / (1 - abar_t)
//
// Images are [B, C, H, W], t [B] i64, one time an image.

// linear: beta from 1e-4 to 0.02 for T = 1000, in proportion for another T. cosine: abar_t in proportion to
// cos^2((t / T + 0.008) / 1.008 pi / 2), no beta above 0.999.
enum class Betas { linear, cosine };

// The numbers of a chain, in double: a coefficient is rounded only when it meets an image, for 1 - abar
// cancels. Each vector is indexed by the step.
struct NoiseSchedule {
  // All of T >= 2 steps; or the shorter chain over `its_times` of them, which are increasing.
  explicit NoiseSchedule(int64_t steps, Betas betas = Betas::linear, std::vector<int64_t> its_times = {});

  std::vector<int64_t> times;          // what the network is told at each step
  std::vector<double> abar, previous;  // abar_t, abar_{t-1}
  std::vector<double> beta;
  std::vector<double> log_variance;  // of q; at the first step, where it is -inf, the second step's
};

// `count` >= 2 times from 0 to steps - 1, evenly, halves rounded to even.
std::vector<int64_t> spaced_times(int64_t steps, int64_t count);

Tensor add_noise(const NoiseSchedule& s, const Tensor& x0, const Tensor& t, const Tensor& noise);  // x_t
// x_0 from x_t and its noise, and the noise from x_t and x_0.
Tensor predict_x0(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& noise);
Tensor predict_noise(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& x0);
Tensor posterior_mean(const NoiseSchedule& s, const Tensor& x0, const Tensor& x, const Tensor& t);
// log of the variance of the step from x_t: between that of q (v = -1) and beta_t (v = 1); beta_t where the
// network learns none (v undefined).
Tensor log_variance(const NoiseSchedule& s, const Tensor& v, const Tensor& t, const Tensor& like);

// The loss of `out` [B, C or 2 C, H, W], the network's answer to x = x_t: mean squared error of its noise;
// where it learns the variance (2 C channels) plus the variational bound in bits per dimension, whose
// gradient goes through v alone. At t = 0 the bound is minus the log likelihood of x0, each value standing
// for the interval of +-1/255 around it, open beyond +-0.999.
Tensor diffusion_loss(const NoiseSchedule& s, const Tensor& out, const Tensor& x0, const Tensor& x,
                      const Tensor& t, const Tensor& noise);

enum class DiffusionSampler { ddpm, ddim };  // ancestral (Ho et al., 2020); deterministic (Song et al., 2021)

struct SampleOptions {
  DiffusionSampler sampler = DiffusionSampler::ddpm;
  int64_t steps = 250;  // of the T, evenly spaced
  double guidance = 1;  // above 1 pushes the noise away from that of "no label" (Ho and Salimans, 2022)
  bool clip = false;    // every predicted x_0 to [-1, 1], for pixels of that range
};

// A network as a sampler sees it.
struct Denoiser {
  // x_t, times and labels [B] -> [B, C or 2 C, H, W]
  std::function<Tensor(const Tensor& x, const Tensor& times, const Tensor& labels)> predict;
  int64_t steps = 1000;
  Betas betas = Betas::linear;
  int64_t no_label = -1;  // the label that stands for none; -1: the network knows no such
};

// Images from noise [B, C, H, W]. Nothing is recorded. draw() gives each step's noise of DDPM; DDIM draws
// none. Fails for guidance without a "no label", and for fewer than 2 or more than T steps.
Tensor sample(const Denoiser& network, const Tensor& noise, const Tensor& labels,
              const SampleOptions& options, const std::function<Tensor()>& draw);

}  // namespace tessera
