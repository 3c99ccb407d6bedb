#include "apps/inspector/serve/model_stage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/formats/resize.h"
#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// The same inputs and model in double, apart from these.
PassInputs in_double(const PassInputs& inputs) {
  PassInputs exact{.model = copy_as(inputs.model, DType::f64), .training = inputs.training};
  for (const auto& [name, tensor] : inputs.inputs)
    exact.inputs[name] = is_float(tensor.dtype()) ? tensor.clone().to(DType::f64) : tensor;
  return exact;
}

const Tensor* leaf_of(const PassInputs& inputs, const std::string& name) {
  if (const Tensor* parameter = inputs.model.parameters.find(name)) return parameter;
  const auto found = inputs.inputs.find(name);
  return found == inputs.inputs.end() ? nullptr : &found->second;
}

// The loss with h added to a cell of a value: of a leaf before the pass, of a computed value as soon as its
// op has run.
double moved_loss(const PassInputs& exact, const PassRecord& record, size_t place, int64_t cell, double h) {
  const auto& steps = record.steps();
  const auto made = std::find_if(steps.begin(), steps.end(),
                                 [&](const PassRecord::Step& step) { return step.output == place; });
  if (made == steps.end()) {
    const std::string& name = record.values()[place].name;
    const Tensor* leaf = leaf_of(exact, name);
    check(leaf != nullptr, "proof: ", name, " is neither a parameter nor an input");
    double& x = leaf->data<double>()[cell];
    const double before = std::exchange(x, x + h);
    const double loss = inspect_pass(exact).loss;
    x = before;
    return loss;
  }
  const Observer observer([&](const ForwardEvent& event) {
    const Tape* tape = Tape::recording();
    if (!tape || !tape->keeps_all() || event.op.name != made->op->name) return;
    if (static_cast<std::ptrdiff_t>(tape->steps().size()) == made - steps.begin())
      event.output.data<double>()[cell] += h;
  });
  return inspect_pass(exact).loss;
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
  return page;
}

Json ModelStage::prove(size_t pass, size_t value, int64_t cell) {
  check(pass == 0, "proof: pass ", pass, "; the engine has pass 0");
  const PassInputs exact = in_double(inputs_);
  const PassRecord record = inspect_pass(exact).record;
  check(value < record.values().size(), "proof: value ", value, "; the pass has ", record.values().size());
  const PassRecord::Value& proved = record.values()[value];
  check(proved.kind != PassRecord::Kind::constant, "proof: ", proved.name, " is a constant");
  check(cell >= 0 && cell < proved.value.elements(), "proof: cell ", cell, "; ", proved.name, " has ",
        proved.value.elements());
  const auto at = static_cast<size_t>(cell);
  const double analytic = proved.gradient.defined() ? proved.gradient.values()[at] : 0;
  const double x = proved.value.values()[at];
  const double h = 1e-4 * (std::isfinite(x) ? std::max(1.0, std::abs(x)) : 1.0);
  const auto loss = [&](double by) { return moved_loss(exact, record, value, cell, by); };
  const double difference = (loss(h) - loss(-h)) / (2 * h);
  const double size = std::max({std::abs(analytic), std::abs(difference), 1e-6});
  const double error = std::abs(analytic - difference) / size;
  return {{"cell", cell},
          {"analytic", analytic},
          {"difference", difference},
          {"error", error},
          {"ok", error < 1e-4}};
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
