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
  gates["start"] = "zero";  // which has no rates to start from
  CHECK(refusal(small(gates)).find("attention.decay.initial") != std::string::npos);
}

TEST_CASE("the ablations are the kinds of decay") {
  const Json config = preset("sdt-xt", 32, 10);
  CHECK(sdt_ablation(config, "content") == config);
  CHECK(sdt_ablation(config, "fixed")["attention"]["decay"]["kind"] == "fixed");
  CHECK(sdt_ablation(config, "distance")["attention"]["decay"]["kind"] == "distance");
  CHECK(sdt_ablation(config, "content-no-distance")["attention"]["decay"]["distance"] == false);
  CHECK(sdt_ablation(config, "none")["attention"]["decay"].is_null());
  for (const std::string& name : sdt_ablations()) {
    CAPTURE(name);
    const Json ablated = sdt_ablation(small({{"kind", "content"}}), name);
    // "fixed" has RMT's ranges of four stages
    CHECK((refusal(ablated) == "") == (name != "fixed"));
    CHECK(cost_of(sdt_ablation(config, name)).parameters <= cost_of(config).parameters);
  }
  CHECK_THROWS_WITH_AS(sdt_ablation(config, "distanc"),
                       "sdt: no ablation 'distanc'; did you mean 'distance'?", Error);
}

TEST_CASE("SDT's loss falls on one batch") {
  const Model model = build(small({{"kind", "content"}}));
  const TensorMap batch{{"input", random_images({6, 3, 8, 8})},
                        {"target", Tensor::from(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, {6})}};
  const std::vector<double> values = losses(model, batch, 60, 0.01);
  CHECK(values.back() < 0.2 * values.front());
}

TEST_CASE("SDT's presets cost what SIZES.md says") {
  check_cost("sdt-h-t", 224, 1000, 14369, 2651019264);
  check_cost("sdt-h-s", 224, 1000, 27040, 5103772672);
  check_cost("sdt-h-b", 224, 1000, 54309, 10950016768);
  check_cost("sdt-xt", 32, 10, 3410, 210981888);
}
