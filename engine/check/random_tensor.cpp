#include <cmath>

#include "engine/check/op_case.h"
#include "engine/core/random.h"

namespace tessera {

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor = Tensor::empty(shape, DType::f64);
  Random random(seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.data<double>()[i] = random.normal();
  return tensor;
}

Tensor random_tensor_away_from_zero(const Shape& shape, uint64_t seed, double gap) {
  Tensor tensor = random_tensor(shape, seed);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double& value = tensor.data<double>()[i];
    value += value < 0 ? -gap : gap;
  }
  return tensor;
}

Tensor random_gates(const Shape& shape, uint64_t seed) {
  Tensor gates = random_tensor_away_from_zero(shape, seed);
  for (int64_t i = 0; i < gates.elements(); ++i) gates.data<double>()[i] = -std::abs(gates.data<double>()[i]);
  return gates;
}

}  // namespace tessera
