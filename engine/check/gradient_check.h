#pragma once

#include <string>
#include <vector>

#include "engine/check/op_case.h"

namespace tessera {

// The largest |a - b| over the largest |b|; 0 if both are zero throughout, infinite where a is not finite
// but b is, or the shapes differ.
double relative_error(const Tensor& a, const Tensor& b);

// An output and the gradient of every input under a fixed random cotangent.
struct Run {
  Tensor output;
  std::vector<Tensor> gradients;
};

// Runs `function` on copies of the case's inputs, converted to `dtype`, on the device.
Run run_case(const OpCase& op_case, const OpCase::Function& function, DType dtype,
             Device device = Device::cpu);

// The largest relative error, over the inputs, of the gradients in double on the device against central
// differences of fourth order of the function weighed by a random cotangent (a plain sum would hide errors: a
// softmax's sum is constant).
double gradient_error(const OpCase& op_case, Device device = Device::cpu);

// Everything that a case is checked for; each failure is a sentence, none is success:
// the gradient; that gradients add to what is there and write all they should (buffers are poisoned with
// NaN); f32 and bf16 against f64; the plain twin in value and gradient; all of that again where chunks of a
// few elements share the work among threads, and one thread against many, bit by bit.
std::vector<std::string> check_case(const OpCase& op_case);

// The case on another device against f64 on the CPU, value and gradients: in f64 (within 1e-12), f32 and
// bf16; and that a repeat gives the same bits.
std::vector<std::string> check_case_on(const OpCase& op_case, Device device);

}  // namespace tessera
