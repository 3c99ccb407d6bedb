#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/optim/adamw.h"
#include "models/model.h"
#include "models/presets.h"

// What tests of several models do.
namespace tessera {

// The reason for which build() refuses a config, "" if it does not.
inline std::string refusal(const Json& config) {
  try {
    build(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// build() refuses the config for a reason that says `part`.
inline void check_refused(const Json& config, const std::string& part) {
  const std::string said = refusal(config);
  CAPTURE(said);
  CHECK(said.find(part) != std::string::npos);
}

// The preset costs so many thousands of parameters, rounded, and exactly so many multiply-accumulates.
inline void check_cost(const std::string& name, int64_t size, int64_t classes, int64_t thousands,
                       int64_t macs) {
  CAPTURE(name);
  const Cost cost = cost_of(preset(name, size, classes));
  CHECK(std::llround(static_cast<double>(cost.parameters) / 1e3) == thousands);
  CHECK(cost.macs == macs);
}

// The losses of training steps on one batch, without dropout.
inline std::vector<double> losses(const Model& model, const TensorMap& inputs, int steps, double lr) {
  AdamW optimizer(make_groups(trainable(model.parameters), 0));
  std::vector<double> values;
  for (int i = 0; i < steps; ++i) {
    Tape tape;
    Pass pass{.training = true, .random = Random(1), .drop = false};
    const Tensor loss = model.training_loss(inputs, {}, pass).loss;
    values.push_back(loss.item());
    model.parameters.zero_grad();
    tape.backward(loss);
    optimizer.step(lr);
  }
  return values;
}

inline Tensor random_images(const Shape& shape, uint64_t seed = 1) {
  return random_tensor(shape, seed).to(DType::f32);
}

}  // namespace tessera
