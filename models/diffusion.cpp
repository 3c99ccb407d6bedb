#include "models/diffusion.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

// beta_t for t = 0 .. T-1.
std::vector<double> betas_of(int64_t steps, Betas kind) {
  const auto T = static_cast<double>(steps);
  const double first = 1e-4 * 1000 / T, last = 0.02 * 1000 / T;
  const auto cosine = [=](double t) {
    return std::pow(std::cos((t / T + 0.008) / 1.008 * std::numbers::pi / 2), 2);
  };
  std::vector<double> betas;
  for (int64_t i = 0; i < steps; ++i) {
    const auto t = static_cast<double>(i);
    betas.push_back(kind == Betas::linear ? first + t * (last - first) / (T - 1)
                                          : std::min(1 - cosine(t + 1) / cosine(t), 0.999));
  }
  return betas;
}

// f(t) for each image's step t of the chain, in the type of `like` and a shape that broadcasts over an image.
// It is looked up in a table of all steps on the images' device. [B, 1, 1, 1]
template <class F> Tensor at(const NoiseSchedule& s, const Tensor& t, const Tensor& like, F f) {
  std::vector<double> values;
  for (size_t step = 0; step < s.abar.size(); ++step) values.push_back(f(step));
  const Tensor table = Tensor::from(values, {std::ssize(values), 1, 1, 1}, like.dtype()).to(like.device());
  return gather(table, t.to(like.device()));
}

// max(x, least); the gradient is 0 below `least`.
Tensor at_least(const Tensor& x, double least) { return add_scalar(relu(add_scalar(x, -least)), least); }

// The tanh approximation of the standard normal distribution function is sigmoid(normal_logit(x)).
const double steepness = 2 * std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
Tensor normal_logit(const Tensor& x) {
  return scale(add(x, scale(multiply(x, square(x)), cubic)), steepness);
}

struct Moments {
  Tensor mean, log_variance;
};

// The sum of KL(q || p), both normal: 1/2 (log p - log q - 1 + exp(log q - log p) + (mean q - mean p)^2 / p).
Tensor divergence(const Moments& q, const Moments& p) {
  const Tensor ratio = subtract(p.log_variance, q.log_variance);
  const Tensor apart = multiply(square(subtract(q.mean, p.mean)), exp(-p.log_variance));
  return scale(sum(add(add_scalar(add(ratio, exp(-ratio)), -1), apart)), 0.5);
}

// -log of the probability under p, at least 1e-12, of the interval of +-1/255 around each x0. With the logits
// a > b of the interval's ends, sigmoid(a) - sigmoid(b) = sigmoid(a) sigmoid(-b) (1 - exp(b - a)), which in
// logarithms keeps its precision in the tails, where both sigmoids are close to 1.
Tensor negative_log_likelihood(const Tensor& x0, const Moments& p) {
  constexpr double least = 1e-12;
  const Tensor inverse_deviation = exp(scale(p.log_variance, -0.5));
  const Tensor x = multiply(subtract(x0, p.mean), inverse_deviation),
               half = scale(inverse_deviation, 1.0 / 255);
  const Tensor below_end = log_sigmoid(normal_logit(add(x, half)));
  const Tensor above_start = log_sigmoid(-normal_logit(subtract(x, half)));
  // a - b = 2 steepness half (1 + cubic (3 x^2 + half^2))
  const Tensor slope = add_scalar(scale(add(scale(square(x), 3), square(half)), cubic), 1);
  const Tensor apart = scale(multiply(half, slope), 2 * steepness);
  const Tensor between = log(at_least(add_scalar(-exp(-apart), 1), least));
  const Tensor has_end = at_most(x0, 0.999),
               has_start = at_most(-x0, 0.999);  // 0: the interval is open on that side
  const Tensor ends = add(multiply(below_end, has_end), multiply(above_start, has_start));
  const Tensor mass = add(ends, multiply(between, multiply(has_end, has_start)));
  return -at_least(mass, std::log(least));
}

// a where `chosen` [B, 1, 1, 1] is 1, b where it is 0.
Tensor choose(const Tensor& chosen, const Tensor& a, const Tensor& b) {
  return add(multiply(a, chosen), multiply(b, add_scalar(-chosen, 1)));
}

// The variational bound in bits, the mean over all elements. Images at the first step have the likelihood
// form, the others the divergence. Both forms are computed for all images, so that the host reads nothing
// back. An image that does not use a form gives it moments that cannot overflow, because an infinity times 0
// would spoil the sum and its gradients.
Tensor bound(const NoiseSchedule& s, const Tensor& x0, const Tensor& x, const Tensor& t, const Moments& p) {
  const Tensor first = at(s, t, x, [](size_t step) { return step == 0 ? 1.0 : 0.0; });
  const Moments q{posterior_mean(s, x0, x, t),
                  at(s, t, x, [&](size_t step) { return s.log_variance[step]; })};
  const Moments later{choose(first, q.mean, p.mean), choose(first, q.log_variance, p.log_variance)};
  const Tensor unit = Tensor::zeros({1}, x.dtype(), x.device());
  const Moments earliest{choose(first, p.mean, x0), choose(first, p.log_variance, unit)};
  const Tensor total = add(divergence(q, later), sum(multiply(negative_log_likelihood(x0, earliest), first)));
  return scale(total, 1 / (std::numbers::ln2 * static_cast<double>(x0.elements())));
}

Tensor clipped(const Tensor& x) {  // to [-1, 1]
  return add_scalar(-relu(add_scalar(-relu(add_scalar(x, 1)), 2)), 1);
}

// The network's answer at one step of a chain; v is undefined if it learns no variance.
struct Denoised {
  Tensor noise, v;
};

Denoised ask(const Denoiser& network, const Tensor& x, const Tensor& times, const Tensor& labels,
             double guidance) {
  const int64_t channels = x.dim(1);
  const Tensor out = network.predict(x, times, labels);
  const bool learns = out.dim(1) == 2 * channels;
  Denoised answer{learns ? slice(out, 1, 0, channels) : out,
                  learns ? slice(out, 1, channels, channels) : Tensor()};
  if (guidance == 1) return answer;
  const Tensor none = Tensor::full(labels.shape(), static_cast<double>(network.no_label), DType::i64);
  const Tensor unlabelled = slice(network.predict(x, times, none), 1, 0, channels);
  answer.noise = add(unlabelled, scale(subtract(answer.noise, unlabelled), guidance));
  return answer;
}

}  // namespace

NoiseSchedule::NoiseSchedule(int64_t steps, Betas betas, std::vector<int64_t> its_times)
    : times(std::move(its_times)) {
  check(steps >= 2, "diffusion: a chain of ", steps, " steps; at least 2 are wanted");
  std::vector<double> all_abar;
  double product = 1;
  for (const double b : betas_of(steps, betas)) all_abar.push_back(product *= 1 - b);
  if (times.empty()) {
    times.resize(static_cast<size_t>(steps));
    std::iota(times.begin(), times.end(), 0);
  }
  check(times.size() >= 2, "diffusion: a chain of one step; at least 2 are wanted");
  double before = 1;
  for (const int64_t t : times) {
    check(t >= 0 && t < steps, "diffusion: time ", t, " of a schedule of ", steps, " steps");
    const double now = all_abar[static_cast<size_t>(t)];
    abar.push_back(now);
    previous.push_back(before);
    beta.push_back(1 - now / before);
    log_variance.push_back(std::log(beta.back() * (1 - before) / (1 - now)));
    before = now;
  }
  log_variance[0] = log_variance[1];
}

std::vector<int64_t> spaced_times(int64_t steps, int64_t count) {
  check(count >= 2 && count <= steps, "diffusion: ", count, " of ", steps,
        " steps; at least 2 are wanted, and no more than there are");
  std::vector<int64_t> times;
  for (int64_t i = 0; i < count; ++i)
    times.push_back(static_cast<int64_t>(
        std::nearbyint(static_cast<double>(i * (steps - 1)) / static_cast<double>(count - 1))));
  return times;
}

Tensor add_noise(const NoiseSchedule& s, const Tensor& x0, const Tensor& t, const Tensor& noise) {
  return add(multiply(at(s, t, x0, [&](size_t i) { return std::sqrt(s.abar[i]); }), x0),
             multiply(at(s, t, x0, [&](size_t i) { return std::sqrt(1 - s.abar[i]); }), noise));
}

Tensor predict_x0(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& noise) {
  return subtract(
      multiply(at(s, t, x, [&](size_t i) { return 1 / std::sqrt(s.abar[i]); }), x),
      multiply(at(s, t, x, [&](size_t i) { return std::sqrt((1 - s.abar[i]) / s.abar[i]); }), noise));
}

Tensor predict_noise(const NoiseSchedule& s, const Tensor& x, const Tensor& t, const Tensor& x0) {
  const Tensor apart =
      subtract(multiply(at(s, t, x, [&](size_t i) { return 1 / std::sqrt(s.abar[i]); }), x), x0);
  return multiply(apart, at(s, t, x, [&](size_t i) { return std::sqrt(s.abar[i] / (1 - s.abar[i])); }));
}

Tensor posterior_mean(const NoiseSchedule& s, const Tensor& x0, const Tensor& x, const Tensor& t) {
  const auto of_x0 = [&](size_t i) { return s.beta[i] * std::sqrt(s.previous[i]) / (1 - s.abar[i]); };
  const auto of_x = [&](size_t i) {
    return (1 - s.previous[i]) * std::sqrt(1 - s.beta[i]) / (1 - s.abar[i]);
  };
  return add(multiply(at(s, t, x, of_x0), x0), multiply(at(s, t, x, of_x), x));
}

Tensor log_variance(const NoiseSchedule& s, const Tensor& v, const Tensor& t, const Tensor& like) {
  const auto large = [&](size_t i) { return std::log(s.beta[i]); };
  if (!v.defined()) return at(s, t, like, large);
  const auto half_range = [&](size_t i) { return (large(i) - s.log_variance[i]) / 2; };
  const auto middle = [&](size_t i) { return (large(i) + s.log_variance[i]) / 2; };
  return add(multiply(v, at(s, t, like, half_range)), at(s, t, like, middle));
}

Tensor diffusion_loss(const NoiseSchedule& s, const Tensor& out, const Tensor& x0, const Tensor& x,
                      const Tensor& t, const Tensor& noise) {
  const int64_t channels = x0.dim(1);
  check(out.dim(1) == channels || out.dim(1) == 2 * channels, "diffusion_loss: output ", out.shape(),
        " for images ", x0.shape(), "; as many channels are wanted, or twice as many");
  const bool learns = out.dim(1) == 2 * channels;
  const Tensor predicted = learns ? slice(out, 1, 0, channels) : out;
  const Tensor error = mean(square(subtract(predicted, noise)));
  if (!learns) return error;
  const Tensor its_mean = posterior_mean(s, predict_x0(s, x, t, predicted.detach()), x, t);
  const Tensor spread = log_variance(s, slice(out, 1, channels, channels), t, x);
  return add(error, bound(s, x0, x, t, {its_mean, spread}));
}

Tensor sample(const Denoiser& network, const Tensor& noise, const Tensor& labels,
              const SampleOptions& options, const std::function<Tensor()>& draw) {
  check(options.guidance == 1 || network.no_label >= 0,
        "diffusion: guidance asks the network without a label too, which it never learned; train with "
        "label_dropout above 0");
  check(labels.shape() == Shape{noise.dim(0)}, "diffusion: labels ", labels.shape(), " for images ",
        noise.shape(), "; one an image is wanted");
  const NoRecording pause;
  const NoiseSchedule s(network.steps, network.betas, spaced_times(network.steps, options.steps));
  Tensor x = noise;
  for (int64_t i = options.steps - 1; i >= 0; --i) {
    const auto step = static_cast<size_t>(i);
    const Tensor t = Tensor::full(labels.shape(), static_cast<double>(i), DType::i64);
    const Tensor time = Tensor::full(labels.shape(), static_cast<double>(s.times[step]), DType::i64);
    const auto [predicted, v] = ask(network, x, time, labels, options.guidance);
    Tensor x0 = predict_x0(s, x, t, predicted);
    if (options.clip) x0 = clipped(x0);
    if (options.sampler ==
        DiffusionSampler::ddim) {  // x_0 and the noise that it leaves in x, at the next time
      const Tensor left = predict_noise(s, x, t, x0);
      x = add(scale(x0, std::sqrt(s.previous[step])), scale(left, std::sqrt(1 - s.previous[step])));
    } else {
      const Tensor deviation = exp(scale(log_variance(s, v, t, x), 0.5));
      x = posterior_mean(s, x0, x, t);
      if (i > 0) x = add(x, multiply(deviation, draw()));
    }
  }
  return x;
}

}  // namespace tessera
