#include "engine/nn/init.h"

#include <cmath>

#include "engine/core/error.h"

namespace tessera {

namespace {

// Draws in double on the host, whatever the parameter's type and device.
Init drawn(std::function<double(Random&)> draw) {
  return [draw = std::move(draw)](const Tensor& parameter, Random& random) {
    const Tensor values = Tensor::empty(parameter.shape(), DType::f64);
    for (int64_t i = 0; i < values.elements(); ++i) values.data<double>()[i] = draw(random);
    parameter.copy_from(values.to(parameter.dtype()).to(parameter.device()));
  };
}

int64_t fan_in_of(const Tensor& parameter, const char* rule) {
  check(parameter.rank() >= 2 && parameter.elements() > 0, rule, ": ", parameter.shape(),
        " is no map [out, in, ...]");
  return parameter.elements() / parameter.dim(0);
}

void glorot(const Tensor& parameter, int64_t fan_in, int64_t fan_out, Random& random) {
  normal(std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)))(parameter, random);
}

}  // namespace

Init constant(double value) {
  return [value](const Tensor& parameter, Random&) { parameter.fill(value); };
}

Init normal(double deviation) {
  return drawn([deviation](Random& random) { return deviation * random.normal(); });
}

Init truncated_normal(double deviation) {
  return drawn([deviation](Random& random) {
    return deviation * random.truncated_normal(-2 / deviation, 2 / deviation);
  });
}

Init uniform(double bound) {
  return drawn([bound](Random& random) { return random.uniform(-bound, bound); });
}

Init xavier_normal() {
  return [](const Tensor& parameter, Random& random) {
    glorot(parameter, fan_in_of(parameter, "xavier_normal"), parameter.dim(0), random);
  };
}

Init xavier_normal_conv() {
  return [](const Tensor& parameter, Random& random) {
    const int64_t fan_in = fan_in_of(parameter, "xavier_normal_conv");
    glorot(parameter, fan_in, parameter.dim(0) * fan_in / parameter.dim(1), random);
  };
}

Init xavier_uniform() {
  return [](const Tensor& parameter, Random& random) {
    const int64_t fans = fan_in_of(parameter, "xavier_uniform") + parameter.dim(0);
    uniform(std::sqrt(6.0 / static_cast<double>(fans)))(parameter, random);
  };
}

Init he_normal() {
  return [](const Tensor& parameter, Random& random) {
    normal(std::sqrt(2.0 / static_cast<double>(fan_in_of(parameter, "he_normal"))))(parameter, random);
  };
}

Init pytorch_uniform() {
  return [](const Tensor& parameter, Random& random) {
    pytorch_uniform(fan_in_of(parameter, "pytorch_uniform"))(parameter, random);
  };
}

Init pytorch_uniform(int64_t fan_in) { return uniform(1 / std::sqrt(static_cast<double>(fan_in))); }

Init weight_init(LinearRule rule) {
  switch (rule) {
    case LinearRule::xavier:
      return xavier_normal();
    case LinearRule::xavier_uniform:
      return xavier_uniform();
    case LinearRule::truncated_normal:
      return truncated_normal(0.02);
    case LinearRule::pytorch:
      return pytorch_uniform();
  }
  fail("init: not one of the rules");
}

Init bias_init(LinearRule rule, int64_t fan_in) {
  return rule == LinearRule::pytorch ? pytorch_uniform(fan_in) : constant(0);
}

}  // namespace tessera
