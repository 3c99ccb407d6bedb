#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// The Euclidean norm of all gradients of the parameters together, summed in double in fixed chunks. Not
// finite where a gradient is not. Parameters without a gradient count as 0; all must have one type.
double gradient_norm(const std::vector<Tensor>& parameters);

// Scales all gradients by max_norm / norm where their norm is larger (Pascanu et al., 2013), and returns the
// norm from before. Where that is not finite no gradient is touched: the caller decides, as by leaving out
// the step. Fails unless max_norm > 0.
double clip_by_norm(const std::vector<Tensor>& parameters, double max_norm);

// The same for a step whose numbers stay on the device: norm [3] f64, on the device of the parameters, zeros
// at first, takes
//   the norm from before;
//   that again, or NaN where the step is to be left out: what Optimizer::step and Ema::update ask;
//   1 from the first norm that is not below `largest` on, and then every step is left out, until who sees it
//   writes a 0: so that steps can be begun before the one before is known to be good.
// The gradients are scaled where the norm is finite and larger than max_norm (0: never).
void clip_on_device(const std::vector<Tensor>& parameters, double max_norm, double largest,
                    const Tensor& norm);

}  // namespace tessera
