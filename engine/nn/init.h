#pragma once

#include <functional>

#include "engine/core/random.h"
#include "engine/core/tensor.h"

namespace tessera {

/// Sets the initial values of a parameter, drawn from `random`, a stream of its own. Values are drawn in
/// double on the host, so that they are the same in every type and on every device.
using Init = std::function<void(const Tensor& parameter, Random& random)>;

Init constant(double value);
Init normal(double deviation);  ///< N(0, deviation^2)
/// N(0, deviation^2), redrawn until in [-2, 2] (not in two deviations), as PyTorch's trunc_normal_ does.
Init truncated_normal(double deviation);
Init uniform(double bound);  ///< in [-bound, bound)
/// N(0, 2 / (fan_in + fan_out)) (Glorot and Bengio, 2010). The parameter counts as a matrix [out, in], where
/// out is axis 0 and in all other axes together: fan_in and fan_out are those two sizes. Fails for fewer than
/// two axes.
Init xavier_normal();
/// xavier_normal for a convolution's weight [out, in / groups, k, k], whose fan_out is out k k.
Init xavier_normal_conv();
/// Uniform in +-sqrt(6 / (fan_in + fan_out)), with the fans of xavier_normal.
Init xavier_uniform();
/// N(0, 2 / fan_in) (He et al., 2015); fan_in is the product of all axes but the first.
Init he_normal();
/// Uniform in +-1/sqrt(fan_in), PyTorch's default. For a bias, give the fan_in of its weight.
Init pytorch_uniform();
Init pytorch_uniform(int64_t fan_in);

/// How a model's linear layers start, as its paper's code has it.
enum class LinearRule {
  xavier,            ///< xavier_normal, bias 0: ViT, PiT, CaiT
  xavier_uniform,    ///< xavier_uniform, bias 0: DiT
  truncated_normal,  ///< truncated_normal(0.02), bias 0: T2T, LV-ViT, RMT
  pytorch,           ///< pytorch_uniform for weight and bias: Swin, EfficientNet
};
Init weight_init(LinearRule rule);
Init bias_init(LinearRule rule, int64_t fan_in);

}  // namespace tessera
