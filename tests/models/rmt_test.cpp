#include "models/rmt.h"

#include <doctest/doctest.h>

#include "engine/check/gradient_check.h"
#include "engine/ops/loss.h"
#include "models/presets.h"
#include "tests/models/differences.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// Two stages on grids of 4 x 4 and 2 x 2, the first decomposed, with every score term.
Json everything() {
  return {{"arch", "rmt"},
          {"image_size", 8},
          {"in_channels", 2},
          {"num_classes", 3},
          {"dim", {8, 12}},
          {"depth", {1, 1}},
          {"mlp_ratio", {2.0, 1.5}},
          {"layer_scale", {0.0, 0.5}},
          {"proj_dim", 6},
          {"tokenizer", {{"kind", "conv_stem"}, {"strides", {2, 1, 1, 1}}}},
          {"attention",
           {{"heads", {2, 3}},
            {"decomposed", {true, false}},
            {"scale", "learned"},
            {"mask_diagonal", true},
            {"relative_bias", true},
            {"prior", {{"sharing", "head"}, {"hidden", 3}}},
            {"decay", {{"kind", "content"}, {"alpha", {0.5, 0.8}}}}}}};
}

Tensor logits_of(const Model& model, const Tensor& images) {
  Pass pass;
  return model.logits(images, pass);
}

void expect_shape(const Model& model, const char* name, const Shape& shape) {
  CAPTURE(name);
  const Tensor* parameter = model.parameters.find(name);
  REQUIRE(parameter);
  CHECK(parameter->shape() == shape);
}

}  // namespace

TEST_CASE("every score term in both forms has the gradient of central differences") {
  const Model model = build(everything(), {.dtype = DType::f64});
  perturb(model);
  const Tensor images = random_tensor({2, 2, 8, 8}, 99),
               labels = Tensor::from(std::vector<int64_t>{2, 0}, {2});
  // Once with batch norm's running statistics, once with the batch's.
  for (const bool training : {false, true})
    check_slopes(
        model,
        [&] {
          Pass pass{.training = training, .drop = false};
          return cross_entropy(model.logits(images, pass), labels);
        },
        1e-5);
}

TEST_CASE("the decomposed form with every term equals its definition in value and gradient") {
  const Model model = build(everything(), {.dtype = DType::f64});
  perturb(model);
  const Tensor images = random_tensor({2, 2, 8, 8}, 7), dy = random_tensor({2, 3}, 8);
  std::vector<Tensor> values, gradients;
  const auto run = [&] {
    model.parameters.zero_grad();
    Tape tape;
    const Tensor logits = logits_of(model, images);
    tape.backward(logits, dy);
    values.push_back(logits);
    for (const Parameter& p : model.parameters)
      if (p.trainable) gradients.push_back(p.value.grad().clone());
  };
  run();
  {
    const PlainAttention plain;
    run();
  }
  CHECK(relative_error(values[0], values[1]) < 1e-12);
  for (size_t i = 0; i < gradients.size() / 2; ++i)
    CHECK(relative_error(gradients[i], gradients[i + gradients.size() / 2]) < 1e-10);
}

TEST_CASE("lines are rows in place, columns turned, and go back") {
  const Tensor x = random_tensor({2, 6, 3}, 1);
  const Grid grid{2, 3};
  CHECK(by_line(x, grid, Lines::rows).shape() == Shape{4, 3, 3});
  CHECK(by_line(x, grid, Lines::rows).raw() == x.raw());
  const Tensor columns = by_line(x, grid, Lines::columns);  // column 1 of image 0: tokens 1 and 4
  CHECK(columns.shape() == Shape{6, 2, 3});
  CHECK(columns.data<double>()[(1 * 2 + 1) * 3 + 2] == x.data<double>()[4 * 3 + 2]);
  for (const Lines lines : {Lines::rows, Lines::columns})
    CHECK(from_lines(by_line(x, grid, lines), grid, lines).values() == x.values());
}

TEST_CASE("a line's prior and relative bias are the entries of the grid's") {
  Parameters parameters;
  AttentionOptions options;
  options.heads = 2;
  options.head_dim = 4;
  options.relative_bias = true;
  options.prior = {Sharing::head, 3};
  const Grid grid{2, 3};
  const Attention attention(Scope(parameters, 1, DType::f64), 8, options, grid, 0);
  for (const Parameter& p : parameters) {
    const Tensor noise = random_tensor(p.value.shape(), 3);
    p.value.copy_from(noise);
  }
  const Tensor x = random_tensor({1, 6, 8}, 2);
  const ScoreTerms all = attention.terms(x, Tensor());
  const auto entry_of = [](const Tensor& m, int64_t head, int64_t i, int64_t j) {
    return m.data<double>()[(head * m.dim(1) + i) * m.dim(2) + j];
  };
  const ScoreTerms rows = attention.terms(x, Lines::rows), columns = attention.terms(x, Lines::columns);
  CHECK(rows.prior.shape() == Shape{2, 3, 3});
  CHECK(columns.bias.shape() == Shape{2, 2, 2});
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        CHECK(entry_of(rows.prior, head, i, j) == doctest::Approx(entry_of(all.prior, head, i, j)));
        CHECK(entry_of(rows.bias, head, i, j) == doctest::Approx(entry_of(all.bias, head, i, j)));
      }
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 2; ++j) {
        CHECK(entry_of(columns.prior, head, i, j) ==
              doctest::Approx(entry_of(all.prior, head, 3 * i, 3 * j)));
        CHECK(entry_of(columns.bias, head, i, j) == doctest::Approx(entry_of(all.bias, head, 3 * i, 3 * j)));
      }
  }
}

TEST_CASE("parameters have the names and shapes of timm's conventions") {
  const Model model = build(everything());
  expect_shape(model, "patch_embed.convs.0.weight", {4, 2, 3, 3});
  expect_shape(model, "patch_embed.norms.3.running_var", {8});
  expect_shape(model, "layers.0.blocks.0.pos.weight", {8, 1, 3, 3});
  expect_shape(model, "layers.0.blocks.0.attn.lepe.weight", {8, 1, 5, 5});
  expect_shape(model, "layers.0.blocks.0.attn.qkv.bias", {24});
  expect_shape(model, "layers.0.blocks.0.attn.gate.weight", {2, 8});
  expect_shape(model, "layers.0.blocks.0.mlp.dwconv.weight", {16, 1, 3, 3});
  expect_shape(model, "layers.0.downsample.reduction.weight", {12, 8, 3, 3});
  expect_shape(model, "layers.1.blocks.0.ls1.gamma", {12});
  expect_shape(model, "layers.1.blocks.0.mlp.fc1.weight", {18, 12});
  expect_shape(model, "head.weight", {3, 6});
  CHECK(!model.parameters.find("layers.0.blocks.0.ls1.gamma"));
  CHECK(!model.parameters.find("layers.1.downsample.reduction.weight"));
}

TEST_CASE("SPT goes in front: in the stem's first convolution, or in place of the stem") {
  Json config = everything();
  config["tokenizer"]["directions"] = "diagonal";
  const Model stem = build(config);
  expect_shape(stem, "patch_embed.convs.0.weight", {4, 10, 3, 3});
  CHECK(logits_of(stem, random_images({2, 2, 8, 8})).shape() == Shape{2, 3});
  config["tokenizer"] = {{"kind", "shifted"}, {"patch_size", 2}, {"directions", "cardinal"}};
  const Model patches = build(config);
  expect_shape(patches, "patch_embed.proj.weight", {8, 10, 2, 2});
  CHECK(logits_of(patches, random_images({2, 2, 8, 8})).shape() == Shape{2, 3});
}

TEST_CASE("what RMT cannot be is refused with the reason") {
  const auto says = [](const std::function<void(Json&)>& change, const std::string& part) {
    Json config = everything();
    change(config);
    check_refused(config, part);
  };
  CHECK(refusal(everything()) == "");
  says([](Json& c) { c["attention"]["heads"] = {2, 5}; }, "does not divide the width 12 of stage 1");
  says([](Json& c) { c["attention"]["heads"] = {8, 3}; }, "rope turns pairs of channels");
  says([](Json& c) { c["attention"]["lepe"] = 4; }, "odd kernel");
  says([](Json& c) { c["attention"]["heads"] = {2, 3, 4}; }, "3 values for 2 stages");
  says([](Json& c) { c["attention"]["decay"]["alpha"] = {0.1}; }, "attention.decay.alpha has 1 values");
  says([](Json& c) { c["attention"]["decay"]["alfa"] = 1; }, "did you mean 'alpha'");
  says([](Json& c) { c["attention"]["prior"]["sharing"] = "model"; }, "share it by head or layer");
  says([](Json& c) { c["depth"] = {1}; }, "each wants one a stage");
  says([](Json& c) { c["tokenizer"]["strides"] = {2, 2}; }, "2 values for 4 convolutions");
  says([](Json& c) { c["tokenizer"]["strides"] = {2, 2, 2, 1}; }, "which mask_diagonal leaves nothing");
  says([](Json& c) { c["dim"] = {1, 12}, c["attention"]["heads"] = {1, 3}; }, "half the width");
  says([](Json& c) { c["rope"] = true; }, "rope is not known here");
}

TEST_CASE("RMT's loss falls on one batch, drop path and batch statistics at work") {
  const Model model = build(everything());
  const TensorMap batch{{"input", random_images({8, 2, 8, 8})},
                        {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1}, {8})}};
  const std::vector<double> values = losses(model, batch, 60, 0.01);
  CHECK(values.back() < 0.2 * values.front());
  Json config = everything();
  config["drop_path"] = 0.5;
  const Model dropping = build(config);
  const auto trained = [&](uint64_t seed) {
    Pass pass{.training = true, .random = Random(seed)};
    return dropping.logits(batch.at("input"), pass).values();
  };
  CHECK(trained(1) == trained(1));
  CHECK(trained(1) != trained(2));
}

TEST_CASE("RMT's presets have the expected parameters and multiply-accumulates") {
  check_cost("rmt-t", 224, 1000, 14334, 2642188288);
  check_cost("rmt-s", 224, 1000, 26967, 4783449088);
  check_cost("rmt-b", 224, 1000, 54155, 10384207104);
  check_cost("rmt-l", 224, 1000, 95465, 19503381504);
  check_cost("rmt-xt", 32, 10, 3402, 210260992);
  CHECK(preset("rmt-xt", 64, 200)["tokenizer"]["strides"] == Json({2, 1, 1, 1}));
  CHECK(preset("rmt-xt", 224, 1000)["tokenizer"]["strides"] == Json({2, 1, 2, 1}));
  CHECK(preset("rmt-t", 32, 10)["tokenizer"]["strides"] == Json({2, 1, 2, 1}));
}
