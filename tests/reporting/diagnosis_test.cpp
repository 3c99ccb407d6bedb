#include "apps/reporting/diagnosis.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

// What tests/reporting/diagnosis_expected.py computed for a fixture, and what the engine does in double.
struct Case {
  Json expected, ours;
};

Case diagnosed(const std::string& name) {
  const TensorFile file = read_safetensors(std::string(TESSERA_FIXTURES "/") + name + ".safetensors");
  NamedTensors weights;
  Tensor input;
  for (const auto& [key, value] : file.tensors) {
    if (key.starts_with("param.")) weights.emplace_back(key.substr(6), value);
    if (key == "input") input = value.to(DType::f64);
  }
  const Model model = build(Json::parse(file.metadata.at("config")), {.dtype = DType::f64});
  model.parameters.load(weights, name);
  AttentionDiagnosis diagnosis(model);
  diagnosis.add(input);
  diagnosis.look_at(input.rows(0, 1), {.row = 0.3, .column = 0.7});
  const Json all = Json::parse(bytes_of(TESSERA_SOURCE "/tests/reporting/diagnosis_expected.json"));
  return {all.at(name), to_json(diagnosis)};
}

// All numbers of nested lists are equal, to 1e-6 of the largest.
void check_equal(const Json& a, const Json& b) {
  const Json flat_a = a.flatten(), flat_b = b.flatten();
  REQUIRE(flat_a.size() == flat_b.size());
  double largest = 0, error = 0;
  for (const auto& [key, value] : flat_b.items()) {
    REQUIRE(flat_a.contains(key));
    largest = std::max(largest, std::abs(value.get<double>()));
    error = std::max(error, std::abs(value.get<double>() - flat_a[key].get<double>()));
  }
  CHECK(error <= 1e-6 * largest);
}

}  // namespace

TEST_CASE("temperatures, divergences, priors and decay equal the reference in double") {
  for (const char* name : {"vit", "l-vit", "sl-vit", "sp-vit", "sp-vit-layer", "sp-vit-shared", "rmt", "sdt",
                           "sdt-distance", "sdt-no-distance"}) {
    CAPTURE(name);
    const auto [expected, ours] = diagnosed(name);
    REQUIRE(ours["layers"].size() == expected["layers"].size());
    for (size_t i = 0; i < ours["layers"].size(); ++i) {
      CAPTURE(i);
      const Json &a = ours["layers"][i], &b = expected["layers"][i];
      CHECK(a["path"] == b["path"]);
      CHECK(a["learned"] == b["learned"]);
      CHECK(a.contains("decay") == b.contains("decay"));
      for (const char* key : {"temperature", "divergence", "sqrt_d", "decay"})
        if (b.contains(key)) check_equal(a[key], b[key]);
    }
    REQUIRE(ours["priors"].size() == expected["priors"].size());
    for (size_t i = 0; i < ours["priors"].size(); ++i) {
      CHECK(ours["priors"][i]["path"] == expected["priors"][i]["path"]);
      check_equal(ours["priors"][i]["omega"], expected["priors"][i]["omega"]);
    }
  }
}

TEST_CASE("a place on the picture names the token that covers it") {
  CHECK(token_at({.row = 0, .column = 0}, {4, 6}) == Grid{0, 0});
  CHECK(token_at({.row = 0.5, .column = 0.5}, {4, 6}) == Grid{2, 3});
  CHECK(token_at({.row = 1, .column = 1}, {4, 6}) == Grid{3, 5});
}
