#include "apps/inspector/pass.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "engine/autograd/tape.h"
#include "engine/io/safetensors.h"
#include "models/check/fixture.h"
#include "tests/inspector/model_fixtures.h"

using namespace tessera;

namespace fs = std::filesystem;

namespace {

struct ParameterGradients {
  double loss;
  std::map<std::string, std::vector<double>> of;  // of the parameters; without those that got none
};

ParameterGradients gradients_of(const Model& model, double loss) {
  ParameterGradients result{loss, {}};
  for (const Parameter& p : model.parameters)
    if (p.value.grad().defined()) result.of[p.name] = p.value.grad().values();
  return result;
}

// The pass as training runs it: fused ops, and nothing kept.
ParameterGradients fast_pass(const PassInputs& inputs) {
  inputs.model.parameters.zero_grad();
  Tape tape;
  Pass state{.training = inputs.training, .random = Random(0), .drop = false};
  const Tensor loss = entry(inputs.model.evaluate(inputs.inputs, state), "loss");
  tape.backward(loss);
  return gradients_of(inputs.model, loss.item());
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

}  // namespace

TEST_CASE("inspect_pass: loss and parameter gradients equal the fast path's, for every architecture") {
  int64_t models = 0;
  for (const auto& [name, path] : model_fixtures()) {
    CAPTURE(name);
    for (const DType dtype : {DType::f32, DType::f64}) {
      CAPTURE(dtype);
      // Batch norms in training move their statistics, so each pass has a model of its own.
      const ParameterGradients fast = fast_pass(inputs_of_fixture(path, dtype));
      const PassInputs inputs = inputs_of_fixture(path, dtype);
      const ParameterGradients recorded = gradients_of(inputs.model, inspect_pass(inputs).loss);
      // In f32 both passes round, each in its own order and as far from the exact gradient as parity allows.
      const double tolerance = (dtype == DType::f32 ? 2 : 1) * parity_tolerance(dtype);
      CHECK(std::abs(recorded.loss - fast.loss) <= tolerance * std::abs(fast.loss));
      REQUIRE(recorded.of.size() == fast.of.size());
      double most = 0;
      for (const auto& [parameter, gradient] : fast.of) most = std::max(most, largest(gradient));
      for (const auto& [parameter, gradient] : fast.of) {
        const std::vector<double>& ours = recorded.of.at(parameter);
        double error = 0;
        for (size_t i = 0; i < gradient.size(); ++i) error = std::max(error, std::abs(ours[i] - gradient[i]));
        const double floor = (dtype == DType::f64 ? 1e-8 : 1e-6) * most;  // parity's own
        CHECK_MESSAGE(error <= std::max(tolerance * largest(gradient), floor), parameter);
      }
    }
    ++models;
  }
  CHECK(models >= 30);
}

TEST_CASE("inspect_pass: every attention has its scores, probabilities and their gradients") {
  for (const auto& [name, path] : model_fixtures()) {
    CAPTURE(name);
    const InspectedPass pass = inspect_pass(inputs_of_fixture(path, DType::f32));
    for (const PassRecord::Step& step : pass.record.steps()) {
      if (step.op->name != std::string_view("softmax")) {
        CHECK(step.op->name != std::string_view("attention"));
        continue;
      }
      const PassRecord::Value &scores = pass.record.values()[step.inputs[0]],
                              &probabilities = pass.record.values()[step.output];
      CHECK(scores.name.starts_with(step.module + ".scores"));
      CHECK(probabilities.name.starts_with(step.module + ".probabilities"));
      CHECK(scores.gradient.defined());
      CHECK(probabilities.gradient.defined());
      CHECK(scores.value.rank() == 4);
    }
  }
}

TEST_CASE("inspect_pass: names of parts that the fast path fuses") {
  const auto has = [](const char* fixture, std::initializer_list<const char*> names) {
    const InspectedPass pass = inspect_pass(
        inputs_of_fixture(fs::path(TESSERA_FIXTURES) / (std::string(fixture) + ".safetensors"), DType::f32));
    for (const char* name : names) CHECK_NOTHROW((void)pass.record.value(name));
  };
  has("sp-vit", {"blocks.0.attn.prior.fc1.out", "blocks.0.attn.prior.fc2.out", "blocks.0.attn.prior.out"});
  has("cait", {"blocks.0.attn.unmixed_scores", "blocks.0.attn.proj_l.out", "blocks.0.attn.proj_w.out",
               "blocks_token_only.0.attn.q"});
  has("pit", {"transformers.1.pool.conv.out", "transformers.1.pool.point.out", "transformers.1.pool.out"});
  has("rmt", {"layers.2.blocks.0.ls1.out", "layers.0.blocks.0.attn.qkv.out", "patch_embed.out",
              "layers.0.downsample.out", "layers.0.blocks.0.mlp.out"});
  has("sdt", {"layers.0.blocks.0.attn.gate.linear", "layers.0.blocks.0.attn.gate.log_sigmoid",
              "layers.0.blocks.0.attn.gate.out"});
  has("t2t", {"tokens_to_token.attention1.attn.scores", "tokens_to_token.out"});
  has("dit", {"y_embed.out", "t_embed.out"});
  has("swin", {"patch_embed.proj.out", "patch_embed.norm.out", "patch_embed.out"});
  has("segment", {"decoder.pool.0.out", "aux.unit.out", "aux.out"});
}
