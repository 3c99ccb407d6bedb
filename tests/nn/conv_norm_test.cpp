#include "engine/nn/conv_norm.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"

using namespace tessera;

TEST_CASE(
    "conv_norm has the same bits whether a tape records or not, and in training the batch's statistics") {
  for (const bool depthwise : {false, true}) {
    CAPTURE(depthwise);
    Parameters parameters;
    const Scope scope(parameters, 1);
    const Conv2d conv(scope / "conv", 16, 16, 3, {.padding = 1, .depthwise = depthwise});
    const BatchNorm norm(scope / "norm", 16);
    const Tensor x = random_tensor({2, 9, 7, 16}, 2).to(DType::f32),
                 shortcut = random_tensor({2, 9, 7, 16}, 3).to(DType::f32);
    const auto both = [&](const Pass& pass) {
      std::vector<double> all = conv_norm(conv, norm, x, pass, Activation::relu).values();
      for (const double value : conv_norm(conv, norm, x, pass, Activation::relu, shortcut).values())
        all.push_back(value);
      return all;
    };
    const auto trained = both({.training = true});  // which also moves the running statistics
    const auto fused = both({});
    CHECK(fused != trained);
    const Tape tape;
    CHECK(both({}) == fused);
    CHECK(tape.steps().size() == 4);  // twice a convolution and a norm, which adds the shortcut
    Tape whole;
    whole.keep_all();
    CHECK(both({}) == fused);
    std::vector<std::string> ops;
    for (const Tape::Step& step : whole.steps()) ops.emplace_back(step.op->name);
    const std::string convolution = depthwise ? "depthwise_conv2d" : "conv2d";
    CHECK(ops == std::vector<std::string>{convolution, "batch_norm", "relu", convolution, "batch_norm", "add",
                                          "relu"});
    CHECK(whole.steps()[4].path == "norm");
    CHECK(whole.steps()[5].path.empty());
  }
}
