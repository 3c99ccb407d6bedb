#include "models/check/model_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "engine/autograd/tape.h"
#include "engine/check/op_case.h"
#include "models/model.h"

namespace tessera {

namespace {

// The sum of the logits of fixed images, weighted by a fixed cotangent, as a function of the weights.
class WeightedLogits {
 public:
  WeightedLogits(const Model& model, int64_t batch, uint64_t seed, Device device = Device::cpu)
      : model_(model),
        images_(random_tensor({batch, model.in_channels(), model.image_size(), model.image_size()}, seed)
                    .to(device)),
        cotangent_(random_tensor(logits().shape(), seed + 1).to(device)) {}

  double value() const {
    const Tensor y = logits();
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.data<double>()[i] * cotangent_.data<double>()[i];
    return sum;
  }

  void backward() const {
    Tape tape;
    tape.backward(logits(), cotangent_);
  }

 private:
  Tensor logits() const {
    Pass pass;
    return model_.logits(images_, pass);
  }

  const Model& model_;
  Tensor images_, cotangent_;
};

// The derivative of the function along `direction` from x, by central differences at +-h and +-2h, whose
// error is of order h^4.
double slope(const WeightedLogits& function, const Tensor& x, const std::vector<double>& direction,
             double h) {
  const Tensor start = x.clone();
  const auto at = [&](double t) {
    for (size_t i = 0; i < direction.size(); ++i)
      x.data<double>()[i] = start.data<double>()[i] + t * direction[i];
    return function.value();
  };
  const double near = at(h) - at(-h), far = at(2 * h) - at(-2 * h);
  x.copy_from(start);
  return (8 * near - far) / (12 * h);
}

// |slope - along| / size, where `along` is the derivative according to the gradient. If it exceeds the
// tolerance, smaller steps are tried too: a difference across a kink such as ReLU's is wrong, and small steps
// cross few kinks, while a wrong gradient is wrong with every step.
double error_along(const WeightedLogits& function, const Tensor& x, const std::vector<double>& direction,
                   double along, double size) {
  double least = std::numeric_limits<double>::infinity();
  for (const double h : {2e-4, 2e-5, 2e-6}) {
    least = std::min(least, std::abs(slope(function, x, direction, h) - along) / size);
    if (least <= model_check_tolerance) break;
  }
  return least;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// A random direction that moves every entry up or down by the same amount. Its length is 1, so that a large
// parameter is moved no further than a small one.
std::vector<double> random_direction(size_t entries, Random& random) {
  const double step = 1 / std::sqrt(static_cast<double>(entries));
  std::vector<double> direction(entries);
  for (double& each : direction) each = random.chance(0.5) ? step : -step;
  return direction;
}

// The error of one parameter's gradient. `floor` replaces the size of a gradient that is zero but for
// rounding.
double error_of(const WeightedLogits& function, const Tensor& x, const std::vector<double>& gradient,
                int64_t entries, double floor, Random random) {
  const auto n = static_cast<size_t>(x.elements());
  const std::vector<double> all = random_direction(n, random);
  const double along = std::inner_product(all.begin(), all.end(), gradient.begin(), 0.0);
  double worst = error_along(function, x, all, along, std::max(root_mean_square(gradient), floor));
  for (int64_t k = 0; k < std::min<int64_t>(entries, x.elements()); ++k) {
    const auto i = static_cast<size_t>(random.below(x.elements()));
    std::vector<double> one(n);
    one[i] = 1;
    worst = std::max(worst, error_along(function, x, one, gradient[i], std::max(largest(gradient), floor)));
  }
  return worst;
}

using GradientValues = std::map<std::string, std::vector<double>>;

// The gradients of a copy of the model on the device, by parameter; zeros for a parameter without a gradient.
GradientValues gradients_on(Device device, const Model& model, const Json& config, int64_t batch,
                            uint64_t seed) {
  const Model copy = build(config, {.dtype = DType::f64, .device = device});
  copy.parameters.load(model.parameters.state(), "gradcheck");
  WeightedLogits(copy, batch, seed, device).backward();
  GradientValues gradients;
  for (const Parameter& p : copy.parameters) {
    const Tensor gradient = p.value.grad();
    gradients[p.name] =
        gradient.defined() ? gradient.values() : std::vector<double>(static_cast<size_t>(p.value.elements()));
  }
  return gradients;
}

}  // namespace

std::vector<ParameterError> check_model(const Json& config, const ModelCheckOptions& options, Device device) {
  const Model model = build(config, {.seed = options.seed, .dtype = DType::f64});
  Random random = Random(options.seed).split(1);
  for (const Parameter& parameter : model.parameters)
    for (int64_t i = 0; i < parameter.value.elements(); ++i)
      parameter.value.data<double>()[i] += 0.05 * random.normal();
  const WeightedLogits function(model, options.batch, options.seed + 2);
  const GradientValues gradients = gradients_on(device, model, config, options.batch, options.seed + 2);
  double all = 0;
  for (const auto& [name, gradient] : gradients) all = std::max(all, largest(gradient));
  std::vector<ParameterError> errors;
  for (const Parameter& parameter : model.parameters)
    if (parameter.trainable)
      errors.push_back({parameter.name, parameter.value.elements(),
                        error_of(function, parameter.value, gradients.at(parameter.name), options.entries,
                                 1e-5 * all, random.split(errors.size()))});
  return errors;
}

}  // namespace tessera
