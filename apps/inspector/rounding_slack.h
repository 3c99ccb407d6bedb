#pragma once

#include <string_view>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// How far two computations of a step in double may lie from one another, in whatever order they sum: several
// times the bound of the rounding errors, which is the number of terms times the largest of them times 2^-53.
// 0 for ops that both do by the same single operation on each cell, or by none.
double slack_of_output(std::string_view op, const std::vector<Tensor>& operands, const Tensor& y);

// The same for the gradient that a step adds to its operand k; dy is the gradient of its output y.
double slack_of_gradient(std::string_view op, const std::vector<Tensor>& operands, size_t k, const Tensor& y,
                         const Tensor& dy);

// The largest finite size of an element; 0 for tensors that are not f64.
double largest_size(const Tensor& x);

}  // namespace tessera
