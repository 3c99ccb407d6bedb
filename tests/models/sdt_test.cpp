#include "models/sdt.h"

#include <doctest/doctest.h>

#include "engine/check/gradient_check.h"
#include "models/presets.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// Two stages, the first decomposed, of this decay.
Json small(const Json& decay) {
  return {{"arch", "sdt"},
          {"image_size", 8},
          {"num_classes", 3},
          {"dim", {8, 16}},
          {"depth", {1, 1}},
          {"mlp_ratio", {2, 2}},
          {"proj_dim", 6},
          {"tokenizer", {{"kind", "conv_stem"}, {"strides", {2, 1, 1, 1}}}},
          {"attention", {{"heads", {2, 4}}, {"decomposed", {true, false}}, {"decay", decay}}}};
}

Tensor logits_of(const Json& config) {
  const Model model = build(config, {.seed = 3, .dtype = DType::f64});
  Pass pass;
  return model.logits(random_tensor({2, 3, 8, 8}, 4), pass);
}

}  // namespace

TEST_CASE("gates that start at RMT's rates make RMT's decay, in both forms") {
  const Json rates{{"kind", "fixed"}, {"initial", 2.0}, {"range", {4, 6}}};
  Json gates = rates;
  gates.update({{"kind", "content"}, {"start", "rmt"}});
  const Tensor gated = logits_of(small(gates)), fixed = logits_of(small(rates));
  CHECK(relative_error(gated, fixed) < 1e-12);
  CHECK(relative_error(logits_of(small({{"kind", "content"}})), fixed) > 1e-6);
  gates["start"] = "zero";  // such gates have no rates to start from
  CHECK(refusal(small(gates)).find("attention.decay.initial") != std::string::npos);
}

TEST_CASE("the paper's ablations are other decays of the same network") {
  const Json config = preset("sdt-xt", 32, 10);
  const int64_t gated = cost_of(config).parameters;
  const auto parameters = [&](const Json& decay) {
    Json ablated = config;
    ablated["attention"]["decay"] = decay;
    return cost_of(ablated).parameters;
  };
  CHECK(parameters({{"kind", "content"}, {"distance", false}}) == gated);  // the gate alone
  for (const Json& decay :
       {Json(), Json{{"kind", "distance"}}, Json{{"kind", "fixed"}, {"range", {4, 4, 6, 6}}}})
    CHECK(parameters(decay) < gated);
}

TEST_CASE("SDT's loss falls on one batch") {
  const Model model = build(small({{"kind", "content"}}));
  const TensorMap batch{{"input", random_images({6, 3, 8, 8})},
                        {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, {6})}};
  const std::vector<double> values = losses(model, batch, 60, 0.01);
  CHECK(values.back() < 0.2 * values.front());
}

TEST_CASE("SDT's presets have the expected parameters and multiply-accumulates") {
  check_cost("sdt-h-t", 224, 1000, 14369, 2651019264);
  check_cost("sdt-h-s", 224, 1000, 27040, 5103772672);
  check_cost("sdt-h-b", 224, 1000, 54309, 10950016768);
  check_cost("sdt-xt", 32, 10, 3410, 210981888);
}
