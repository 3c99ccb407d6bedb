#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// One way to use an op, on small inputs. The same case serves the gradient check, the check of f32 and bf16
// against double, of the fast op against its plain twin, of one thread against many, and the timer.
struct OpCase {
  using Function = std::function<Tensor(std::span<const Tensor> inputs)>;

  std::string op;              // the catalog's name
  std::string variant;         // what is special here: "no bias", "broadcast"; may be empty
  std::vector<Tensor> inputs;  // f64; each gets a gradient. Keep them away from kinks (relu at 0)
  // The op on inputs of any floating type; labels and indices it captures itself.
  Function function;
  Function plain = nullptr;     // the same, composed from recorded ops; none for most ops
  double tolerance = 1e-7;      // of the gradient against central differences, relative
  double f32_tolerance = 1e-5;  // of f32 against f64, relative to the tensor's largest value
  double bf16_tolerance = 0.03;
  // Why the parallel loops of this case have one chunk however short chunks are; empty for most cases.
  std::string unsplit_forward = "", unsplit_backward = "";

  std::string name() const { return variant.empty() ? op : op + " (" + variant + ")"; }
};

using OpCases = std::vector<OpCase>;

// A family a function, in engine/check/cases/<family>_cases.cpp.
OpCases elementwise_cases();
OpCases activation_cases();
OpCases reduce_cases();
OpCases shape_cases();
OpCases matmul_cases();
OpCases norm_cases();
OpCases batch_norm_cases();
OpCases conv_cases();
OpCases take_cases();
OpCases resample_cases();
OpCases rotary_cases();
OpCases softmax_cases();
OpCases loss_cases();
OpCases patch_cases();
OpCases dropout_cases();
OpCases attention_cases();

// All of them, in the catalog's order.
OpCases all_cases();

// x where `like` lies, in its type if x is floating: for what a case captures.
inline Tensor beside(const Tensor& x, const Tensor& like) {
  return (is_float(x.dtype()) ? x.to(like.dtype()) : x).to(like.device());
}

// Standard normal f64 values, the same for the same seed.
Tensor random_tensor(const Shape& shape, uint64_t seed);
// The same, each moved away from zero by `gap`: for functions with a kink there.
Tensor random_tensor_away_from_zero(const Shape& shape, uint64_t seed, double gap = 0.1);

}  // namespace tessera
