#include "apps/inspector/terms.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "apps/inspector/picture_inputs.h"
#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/inspector/coloured.h"

using namespace tessera;

namespace {

// A model whose every weight is off its start, so that each term does something.
Model trained(const Json& config) {
  const Model model = build(config, {.seed = 3});
  Random random(7);
  for (const Parameter& p : model.parameters) {
    float* x = p.value.data<float>();
    for (int64_t i = 0; i < p.value.elements(); ++i)
      x[i] += 0.1f * static_cast<float>(random.uniform() - 0.3);
  }
  return model;
}

InspectedPass pass_of(const Model& model) {
  return inspect_pass(inputs_of_picture(model, {.image = coloured(model.image_size())},
                                        {imagenet_normalisation}, {.target = 1}));
}

std::vector<std::string> names_of(const Json& config) {
  std::vector<std::string> names;
  for (const Term& term : terms_of(config)) names.push_back(term.name);
  return names;
}

Json shallow(Json config) {
  if (config["depth"].is_array())
    config["depth"] = std::vector<int>(config["depth"].size(), 1);
  else
    config["depth"] = 2;
  if (config.value("sp_layers", 0) > 0) config["sp_layers"] = 1;
  return config;
}

// The pass of a model that was built without the term has the same bits, forward and backward.
void check_equals(const Model& model, const std::string& term, const std::function<void(Json&)>& take_out) {
  CAPTURE(term);
  Json config = model.config;
  take_out(config);
  REQUIRE(config != model.config);
  const Model built = build(config);
  NamedTensors own;
  for (const Parameter& p : built.parameters) own.emplace_back(p.name, *model.parameters.find(p.name));
  built.parameters.load(own, "test");
  const InspectedPass expected = pass_of(built), whole = pass_of(model),
                      off = pass_of(without_term(model, term));
  CHECK(off.loss == expected.loss);
  CHECK(off.loss != whole.loss);
  REQUIRE(off.record.values().size() == expected.record.values().size());
  for (size_t i = 0; i < off.record.values().size(); ++i) {
    const PassRecord::Value &a = off.record.values()[i], &b = expected.record.values()[i];
    CHECK(a.name == b.name);
    CHECK(a.value.values() == b.value.values());
    REQUIRE(a.gradient.defined() == b.gradient.defined());
    if (a.gradient.defined()) CHECK_MESSAGE(a.gradient.values() == b.gradient.values(), a.name);
  }
}

}  // namespace

TEST_CASE("without_term: the pass equals that of a model built without the term, bit for bit") {
  const Model sl = trained(shallow(preset("sl-vit", 16, 3)));
  CHECK(names_of(sl.config) == std::vector<std::string>{"temperature", "mask", "shift"});
  check_equals(sl, "temperature", [](Json& c) { c["attention"]["scale"] = "fixed"; });
  check_equals(sl, "mask", [](Json& c) { c["attention"].erase("mask_diagonal"); });
  check_equals(sl, "shift", [](Json& c) { c["tokenizer"]["ratio"] = 0; });

  Json config = shallow(preset("vit", 16, 3));
  config["attention"]["prior"] = {{"sharing", "layer"}, {"hidden", 4}};
  config["attention"]["decay"] = {{"kind", "content"}, {"alpha", 0.5}};
  config["attention"]["relative_bias"] = true;
  const Model all = trained(config);
  CHECK(names_of(config) == std::vector<std::string>{"prior", "bias", "decay", "gates"});
  check_equals(all, "prior", [](Json& c) { c["attention"].erase("prior"); });
  check_equals(all, "bias", [](Json& c) { c["attention"].erase("relative_bias"); });
  check_equals(all, "decay", [](Json& c) { c["attention"]["decay"] = nullptr; });
  check_equals(all, "gates", [](Json& c) {
    c["attention"]["decay"] = {{"kind", "distance"}, {"alpha", 0.5}};
  });
}

TEST_CASE("without_term: models in stages") {
  const Model rmt = trained(shallow(preset("rmt-xt", 32, 3)));
  CHECK(names_of(rmt.config) == std::vector<std::string>{"decay", "rope", "lepe"});
  check_equals(rmt, "decay", [](Json& c) { c["attention"].erase("decay"); });
  check_equals(rmt, "rope", [](Json& c) { c["attention"]["rope"] = false; });
  check_equals(rmt, "lepe", [](Json& c) { c["attention"]["lepe"] = 0; });
  const Model sdt = trained(shallow(preset("sdt-xt", 32, 3)));
  check_equals(sdt, "gates", [](Json& c) {
    c["attention"]["decay"] = {{"kind", "distance"}, {"alpha", c["attention"]["decay"]["alpha"]}};
  });
  const Model swin = trained(shallow(preset("sl-swin-spool", 32, 3)));
  CHECK(names_of(swin.config) == std::vector<std::string>{"temperature", "mask", "bias", "shift"});
  check_equals(swin, "shift", [](Json& c) {
    c["tokenizer"]["ratio"] = 0;
    c["pool"]["ratio"] = 0;
  });
}

TEST_CASE("without_term: LV-ViT keeps its class token where it joins, and every factor is 1") {
  const Model model = trained(shallow(preset("sp-vit-t", 32, 3)));
  CHECK(names_of(model.config) == std::vector<std::string>{"prior"});
  const InspectedPass off = pass_of(without_term(model, "prior"));
  const std::vector<double> factors = off.record.value("blocks.0.attn.prior.out").value.values();
  CHECK(std::ranges::all_of(factors, [](double x) { return x == 1; }));
  const InspectedPass whole = pass_of(model);
  for (const char* name : {"blocks.0.attn.prior.out", "blocks.0.attn.scores", "blocks.0.out", "logits"})
    CHECK_MESSAGE(off.record.value(name).value.values() != whole.record.value(name).value.values(), name);
}

TEST_CASE("terms: what a model does not have") {
  CHECK(names_of(preset("vit", 16, 3)).empty());
  CHECK(names_of(preset("resnet56", 32, 3)).empty());
  CHECK(names_of(preset("sp-vit-s-seg", 32, 3)) == std::vector<std::string>{"prior"});
  const Model plain = build(shallow(preset("vit", 16, 3))), sl = build(shallow(preset("sl-vit", 16, 3)));
  CHECK(error_of([&] { without_term(plain, "mask"); }).find("no term") != std::string::npos);
  CHECK(error_of([&] { without_term(sl, "prior"); }).find("are temperature, mask, shift") !=
        std::string::npos);
  CHECK(error_of([&] { without_term(sl, "masc"); }).find("did you mean 'mask'?") != std::string::npos);
}
