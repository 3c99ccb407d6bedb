#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "engine/autograd/tape.h"
#include "engine/check/op_case.h"
#include "models/model.h"

namespace tessera {

// Perturbs every weight of a double model, because some start at zero and make other gradients zero.
inline void perturb(const Model& model, double size = 0.2) {
  uint64_t seed = 0;
  for (const Parameter& p : model.parameters) {
    if (!p.trainable) continue;
    const Tensor noise = random_tensor(p.value.shape(), ++seed);
    for (int64_t i = 0; i < noise.elements(); ++i)
      p.value.data<double>()[i] += size * noise.data<double>()[i];
  }
}

// Checks the gradient of `loss` along a random direction of each parameter of a double model against central
// differences of fourth order.
inline void check_slopes(const Model& model, const std::function<Tensor()>& loss, double tolerance = 1e-6) {
  model.parameters.zero_grad();
  {
    Tape tape;
    tape.backward(loss());
  }
  for (const Parameter& p : model.parameters) {
    if (!p.trainable) continue;
    CAPTURE(p.name);
    const Tensor direction = random_tensor(p.value.shape(), 5), start = p.value.clone();
    const auto along = [&](double step) {
      for (int64_t i = 0; i < start.elements(); ++i)
        p.value.data<double>()[i] = start.data<double>()[i] + step * direction.data<double>()[i];
      return loss().item();
    };
    const double h = 1e-4;
    const double slope = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h);
    along(0);
    REQUIRE(p.value.grad().defined());
    double predicted = 0;
    for (int64_t i = 0; i < start.elements(); ++i)
      predicted += p.value.grad().data<double>()[i] * direction.data<double>()[i];
    CAPTURE(predicted);
    CHECK(std::abs(predicted - slope) <= tolerance * std::max(std::abs(slope), 1e-3));
  }
}

}  // namespace tessera
