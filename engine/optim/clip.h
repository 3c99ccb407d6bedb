#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// The Euclidean norm of the gradients of all parameters together, summed in double in fixed chunks; not
/// finite if any gradient is not. Parameters without a gradient count as 0; all must have one type.
double gradient_norm(const std::vector<Tensor>& parameters);

/// Sets norm[0] of norm [3] (f64, on the tensors' device) to the Euclidean norm of all elements of the
/// tensors together, summed in double in fixed chunks, without waiting for the device. The tensors must have
/// one type; the other two elements are as clip_on_device() has them.
void norm_on_device(const std::vector<Tensor>& tensors, const Tensor& norm);

/// Scales all gradients by max_norm / norm if their norm is larger than max_norm (Pascanu et al., 2013).
/// Returns the norm before scaling. If it is not finite, no gradient changes: the caller decides, for example
/// to skip the step. Fails unless max_norm > 0.
double clip_by_norm(const std::vector<Tensor>& parameters, double max_norm);

/// Clips like clip_by_norm, but leaves the norm on the device, so that the host can begin further steps
/// before it knows whether this one is good. norm [3], f64, zeros at first, on the parameters' device,
/// receives
///   norm[0]: the norm before scaling;
///   norm[1]: the same, or NaN if the step must be skipped; Optimizer::step and Ema::update read it;
///   norm[2]: a sticky flag. The first norm that is not below `largest` sets it to 1; while it is set, steps
///   are
///            skipped; the host clears it.
/// A max_norm of 0 never scales.
void clip_on_device(const std::vector<Tensor>& parameters, double max_norm, double largest,
                    const Tensor& norm);

}  // namespace tessera
