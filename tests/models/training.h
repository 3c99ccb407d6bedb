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

// Helpers that the tests of several models share.
namespace tessera {

// The message with which build() refuses a config, or "" if it accepts it.
inline std::string refusal(const Json& config) {
  try {
    build(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Checks that build() refuses the config with a message that contains `part`.
inline void check_refused(const Json& config, const std::string& part) {
  const std::string said = refusal(config);
  CAPTURE(said);
  CHECK(said.find(part) != std::string::npos);
}

// Checks a preset's parameters, in thousands, and its exact multiply-accumulates.
inline void check_cost(const std::string& name, int64_t size, int64_t classes, int64_t thousands,
                       int64_t macs) {
  CAPTURE(name);
  const Cost cost = cost_of(preset(name, size, classes));
  CHECK(std::llround(static_cast<double>(cost.parameters) / 1e3) == thousands);
  CHECK(cost.macs == macs);
}

// The losses of `steps` training steps on one batch, without dropout.
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
