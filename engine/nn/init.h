#pragma once

#include <functional>

#include "engine/core/random.h"
#include "engine/core/tensor.h"

namespace tessera {

// Sets a fresh parameter's numbers from a stream of draws of its own.
using Init = std::function<void(const Tensor& parameter, Random& random)>;

Init constant(double value);
Init normal(double deviation);  // N(0, deviation^2)
Init truncated_normal(
    double deviation);       // the same, redrawn outside [-2, 2] as PyTorch's trunc_normal_ has it
Init uniform(double bound);  // in [-bound, bound)
// Glorot and Bengio (2010): N(0, 2 / (fan_in + fan_out)). The fans are those of the parameter read as a
// linear map [out, in], whatever its further axes: out is axis 0, in all the others.
Init xavier_normal();
// The same for a convolution's weight [out, in / groups, k, k]: its fan_out is out k k.
Init xavier_normal_conv();
Init xavier_uniform();  // with the fans of xavier_normal: uniform in +-sqrt(6 / (fan_in + fan_out))
// N(0, 2 / fan_in) (He et al., 2015); fan_in is the product of all axes but the first.
Init he_normal();
// PyTorch's own: uniform in +-1/sqrt(fan_in). For a bias, the fan_in of its weight is given.
Init pytorch_uniform();
Init pytorch_uniform(int64_t fan_in);

// How a model draws its linear layers, by its paper's code.
enum class LinearRule {
  xavier,            // xavier_normal, bias 0: ViT, PiT, CaiT
  xavier_uniform,    // bias 0: DiT
  truncated_normal,  // deviation 0.02, bias 0: T2T, LV-ViT, RMT
  pytorch,           // pytorch_uniform, the bias too: Swin, EfficientNet
};
Init weight_init(LinearRule rule);
Init bias_init(LinearRule rule, int64_t fan_in);

}  // namespace tessera
