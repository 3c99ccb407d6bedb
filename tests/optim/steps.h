#pragma once

#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/random.h"
#include "engine/core/tensor.h"
#include "engine/optim/optimizer.h"
#include "tests/autograd/leaf.h"
#include "tests/error_of.h"

namespace tessera {

// As backward() would leave it.
inline void set_gradient(const Tensor& parameter, const Tensor& gradient) {
  parameter.leaf()->grad = gradient.to(parameter.dtype()).clone();
  parameter.leaf()->stale = false;
}

inline Tensor drawn(const Shape& shape, uint64_t seed, DType dtype = DType::f32) {
  Random random(seed);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = random.normal();
  return Tensor::from(values, shape, dtype);
}

// Parameters of sizes around a chunk's, an empty one among them.
inline NamedTensors uneven_parameters(DType dtype = DType::f32) {
  NamedTensors parameters;
  for (const int64_t n : {3, 40000, 0, 16384, 1, 16385, 500})
    parameters.emplace_back("p" + std::to_string(n),
                            drawn({n}, static_cast<uint64_t>(n) + 1, dtype).require_grad());
  return parameters;
}

inline void set_gradients(const NamedTensors& parameters, uint64_t seed) {
  for (const auto& [name, p] : parameters) set_gradient(p, drawn(p.shape(), ++seed, p.dtype()));
}

inline std::vector<double> all_values(const NamedTensors& tensors) {
  std::vector<double> all;
  for (const auto& [name, tensor] : tensors) {
    const std::vector<double> values = tensor.values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The results of f() on one thread and on many.
template <class F> auto on_one_and_many_threads(F&& f) {
  set_threads(1);
  const auto one = f();
  set_threads(4);
  const auto many = f();
  set_threads(0);
  return std::pair(one, many);
}

}  // namespace tessera
