#include "apps/inspector/serve/model_stage.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "apps/inspector/next_update.h"
#include "apps/inspector/proof.h"
#include "apps/inspector/terms.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

std::string short_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace

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
  OptimizerConfig optimizer;
  optimizer.weight_decay = options_.weight_decay;
  shown.optimizer = "the AdamW of this page, learning rate " + short_text(options_.rate) + ", after " +
                    std::to_string(steps_) + (steps_ == 1 ? " step" : " steps");
  shown.updates =
      updates_of(inputs_.model, {.optimizer = optimizer, .lr = options_.rate, .state = optimizer_.state()});
  for (const Term& term : terms_of(inputs_.model.config)) {
    const auto found = off_.find(term.name);
    page.terms.push_back({{"name", term.name},
                          {"title", term.title},
                          {"pass", found == off_.end() ? Json() : Json(page.passes.size())}});
    if (found == off_.end()) continue;
    PagePass& without = page.passes.emplace_back(page_pass(found->second.inputs, found->second.pass));
    without.role = "term";
    without.title = options_.title + " without the " + term.title;
    without.source = options_.source;
  }
  return page;
}

ModelStage::Without ModelStage::without(const std::string& term) const {
  PassInputs inputs = inputs_;
  inputs.model = without_term(inputs_.model, term);
  InspectedPass pass = inspect_pass(inputs);
  return {std::move(inputs), std::move(pass)};
}

void ModelStage::refresh() {
  pass_ = inspect_pass(inputs_);
  for (auto& [term, pass] : off_) pass = without(term);
}

const PassInputs& ModelStage::inputs_of(size_t pass) const {
  if (pass == 0) return inputs_;
  size_t place = 0;
  for (const Term& term : terms_of(inputs_.model.config))
    if (const auto found = off_.find(term.name); found != off_.end() && ++place == pass)
      return found->second.inputs;
  fail("proof: pass ", pass, "; the engine has 0 to ", place);
}

Json ModelStage::prove(size_t pass, size_t value, int64_t cell) {
  return json_of(Prover(experiment_of(inputs_of(pass))).prove(value, cell));
}

void ModelStage::show(const Image& picture) {
  check(inputs_.picture.has_value(), "this pass has no picture that another could replace");
  const Image fitted =
      fit_square(picture, static_cast<int>(inputs_.model.image_size()), "picture", options_.fit);
  inputs_ = inputs_of_picture(inputs_.model, {.image = fitted}, {inputs_.normalisation, inputs_.class_names},
                              options_.question);
  refresh();
}

void ModelStage::set_term(const std::string& name, bool on) {
  if (!on)
    off_.insert_or_assign(name, without(name));
  else
    off_.erase(name);
}

void ModelStage::step() {
  optimizer_.step(options_.rate);
  ++steps_;
  refresh();
}

}  // namespace tessera
