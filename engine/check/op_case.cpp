#include "engine/check/op_case.h"

#include <iterator>

#include "engine/core/random.h"

namespace tessera {

OpCases all_cases() {
  OpCases all;
  for (const auto family : {elementwise_cases, activation_cases, reduce_cases, shape_cases, matmul_cases,
                            norm_cases, batch_norm_cases, conv_cases, softmax_cases, loss_cases, patch_cases,
                            dropout_cases, attention_cases}) {
    OpCases cases = family();
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  }
  return all;
}

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

}  // namespace tessera
