#pragma once

#include <string>
#include <vector>

#include "engine/check/op_case.h"

namespace tessera {

/// max |a - b| / max |b|, over the elements. Returns 0 for equal tensors, and infinity if a is not finite
/// where b is, if the shapes differ, or if either is undefined.
double relative_error(const Tensor& a, const Tensor& b);

/// An output and the gradient of every input under a fixed random cotangent.
struct Run {
  Tensor output;
  std::vector<Tensor> gradients;
};

/// Runs `function` forward and backward on copies of the case's inputs, converted to `dtype`, on the device.
/// An input that gets no gradient counts as having zeros.
Run run_case(const OpCase& op_case, const OpCase::Function& function, DType dtype,
             Device device = Device::cpu);

/// The largest relative error of the inputs' gradients in double on the device. They are compared with
/// central differences of fourth order (on the CPU) of sum(output * cotangent), where the cotangent is
/// random: a plain sum of the output would hide errors, because a softmax's sum is constant.
double gradient_error(const OpCase& op_case, Device device = Device::cpu);

/// Makes all checks of a case on the CPU and returns a sentence for each failure. It checks the gradient;
/// that gradients add to existing ones and that every element is written (new memory is filled with NaN); f32
/// and bf16 against f64; the plain twin in value and gradient; all of this again with chunks of a few
/// elements (SmallChunks), which share the work among threads, and then one thread against many, bit by bit.
std::vector<std::string> check_case(const OpCase& op_case);

/// Compares value and gradients on another device, in f64 (within 1e-12), f32 and bf16, with f64 on the CPU;
/// and checks that a repeat gives the same bits.
std::vector<std::string> check_case_on(const OpCase& op_case, Device device);

}  // namespace tessera
