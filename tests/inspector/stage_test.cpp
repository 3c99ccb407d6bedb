#include <doctest/doctest.h>

#include <string>

#include "apps/inspector/serve/model_stage.h"
#include "models/presets.h"
#include "tests/error_of.h"

using namespace tessera;

TEST_CASE("stage: another picture of any size, steps that change the weights, and a class that stays") {
  const Json config = preset("sl-vit", 16, 3);
  const Question question{.target = 1};
  ModelStage stage(
      inputs_of_picture(build(config, {.seed = 5}), {Image(16, 16)}, {imagenet_normalisation}, question),
      {.title = "sl-vit", .source = "sl-vit", .question = question});
  const double black = stage.pass().loss;
  Image picture(40, 24);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 7);
  stage.show(picture);
  const double before = stage.pass().loss;
  CHECK(before != black);
  const Page page = stage.page();
  CHECK(page.passes[0].picture->width == 16);
  CHECK(page.passes[0].target == 1);
  CHECK(stage.prove(0, 0, 7)["ok"] == true);
  stage.step();
  CHECK(stage.pass().loss < before);
  CHECK(error_of([&] { stage.prove(1, 0, 0); }).find("pass 1") != std::string::npos);
  CHECK(error_of([&] { stage.prove(0, 0, -1); }).find("cell -1") != std::string::npos);
}

TEST_CASE("stage: a term switched off is one more pass, with proofs, of the weights as they are now") {
  const Question question{.target = 1};
  ModelStage stage(inputs_of_picture(build(preset("sl-vit", 16, 3), {.seed = 5}), {Image(16, 16)},
                                     {imagenet_normalisation}, question),
                   {.title = "sl-vit", .source = "sl-vit", .question = question});
  Page page = stage.page();
  CHECK(page.terms.size() == 3);
  CHECK(page.terms[1]["pass"].is_null());
  stage.set_term("mask", false);
  page = stage.page();
  REQUIRE(page.passes.size() == 2);
  CHECK(page.terms[1] == Json{{"name", "mask"}, {"title", "diagonal mask (LSA)"}, {"pass", 1}});
  CHECK(page.passes[1].role == "term");
  const double before = page.passes[1].record->value("loss").value.item();
  CHECK(before != stage.pass().loss);
  CHECK(stage.prove(1, 0, 7)["ok"] == true);
  stage.step();
  CHECK(stage.page().passes[1].record->value("loss").value.item() < before);
  CHECK(stage.page().passes[0].optimizer.find("after 1 step") != std::string::npos);
  stage.set_term("mask", true);
  CHECK(stage.page().passes.size() == 1);
  CHECK(error_of([&] { stage.set_term("masc", false); }).find("did you mean 'mask'?") != std::string::npos);
}
