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
    check(parameter.rank() >= 2, "xavier_normal: ", parameter.shape(), " is no linear map [out, in]");
    const int64_t fan_out = parameter.dim(0), fan_in = parameter.elements() / fan_out;
    normal(std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)))(parameter, random);
  };
}

}  // namespace tessera
