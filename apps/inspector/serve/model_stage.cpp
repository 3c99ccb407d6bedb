#include "apps/inspector/serve/model_stage.h"

#include <algorithm>
#include <utility>

#include "apps/inspector/proof.h"
#include "data/formats/resize.h"
#include "engine/core/error.h"

namespace tessera {

ModelStage::ModelStage(PassInputs inputs, Options options)
    : inputs_(std::move(inputs)),
      options_(std::move(options)),
      pass_(inspect_pass(inputs_)),
      optimizer_(make_groups(trainable(inputs_.model.parameters), options_.weight_decay)) {}

Page ModelStage::page() {
  Page page{.title = options_.title};
  PagePass& shown = page.passes.emplace_back(page_pass(inputs_, pass_));
  shown.title = options_.title;
  shown.source = options_.source;
  return page;
}

Json ModelStage::prove(size_t pass, size_t value, int64_t cell) {
  check(pass == 0, "proof: pass ", pass, "; the engine has pass 0");
  return json_of(Prover(experiment_of(inputs_)).prove(value, cell));
}

void ModelStage::show(const Image& picture) {
  check(inputs_.picture.has_value(), "this pass has no picture that another could replace");
  const Image fitted = fit_square(picture, static_cast<int>(inputs_.model.image_size()), "picture");
  const auto inputs_for = [&](int64_t target) {
    return inputs_of_picture(inputs_.model, fitted, inputs_.normalisation, target);
  };
  PassInputs inputs = inputs_for(std::max<int64_t>(options_.target, 0));
  if (options_.target < 0) {
    Pass state;
    const std::vector<double> logits = inputs_.model.logits(inputs.inputs.at("input"), state).values();
    inputs = inputs_for(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  inputs.class_names = inputs_.class_names;
  InspectedPass pass = inspect_pass(inputs);
  inputs_ = std::move(inputs);
  pass_ = std::move(pass);
}

void ModelStage::set_term(const std::string& name, bool) { fail("no term '", name, "' to switch off"); }

void ModelStage::step() {
  optimizer_.step(options_.rate);
  pass_ = inspect_pass(inputs_);
}

}  // namespace tessera
