#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// One way to use an op, on small inputs. The same case serves the gradient check, the comparison of f32 and
/// bf16 with double, of the fast op with its plain twin, of one thread with many, of devices, and the timer.
struct OpCase {
  using Function = std::function<Tensor(std::span<const Tensor> inputs)>;

  std::string op;              ///< the catalog's name
  std::string variant;         ///< what this case tries: "no bias", "broadcast"; may be empty
  std::vector<Tensor> inputs;  ///< f64; each gets a gradient. Keep them away from kinks (relu at 0)
  /// The op on inputs of any floating type and device. It captures labels and indices; see beside().
  Function function;
  /// The plain twin: the definition, composed from other recorded ops, with the same value and gradients.
  /// Every fused or vectorised op has one (tests/ops/cases_test.cpp lists the primitive ops that need none).
  Function plain = nullptr;
  double tolerance = 1e-7;      ///< of the gradient against central differences, relative
  double f32_tolerance = 1e-5;  ///< of f32 against f64, relative to the tensor's largest value
  double bf16_tolerance = 0.03;
  /// Why the parallel loops of this case have one chunk however short chunks are; empty for most cases.
  std::string unsplit_forward = {}, unsplit_backward = {};

  std::string name() const { return variant.empty() ? op : op + " (" + variant + ")"; }
};

using OpCases = std::vector<OpCase>;

// The families of ops. Each has its cases in engine/check/cases/<family>_cases.cpp, as <family>_cases(); a
// new family is one more word here.
#define TESSERA_CASE_FAMILIES(row)                                                                         \
  row(elementwise) row(activations) row(reduce) row(shape) row(take) row(resample) row(rotary) row(matmul) \
      row(norm) row(batch_norm) row(conv) row(softmax) row(loss) row(patches) row(dropout) row(attention)  \
          row(decay)

#define TESSERA_DECLARE(family) OpCases family##_cases();
TESSERA_CASE_FAMILIES(TESSERA_DECLARE)
#undef TESSERA_DECLARE

/// The cases of every family.
OpCases all_cases();

/// A constant that a case captures, on the device of `like`, and converted to its type if it is floating.
inline Tensor beside(const Tensor& x, const Tensor& like) {
  return (is_float(x.dtype()) ? x.to(like.dtype()) : x).to(like.device());
}

/// Standard normal f64 values, the same for the same seed.
Tensor random_tensor(const Shape& shape, uint64_t seed);
/// Gates as a log sigmoid leaves them: negative, none near 0.
Tensor random_gates(const Shape& shape, uint64_t seed);
/// random_tensor() with each value moved away from zero by `gap`, for functions with a kink there.
Tensor random_tensor_away_from_zero(const Shape& shape, uint64_t seed, double gap = 0.1);

}  // namespace tessera
