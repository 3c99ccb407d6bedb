#include "apps/training/layer_watch.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/ops/elementwise.h"
#include "engine/optim/clip.h"

namespace tessera {

namespace {

constexpr size_t block = 64;  // norms that share a tensor

std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

double root_of_mean(double squares, int64_t elements) {
  return elements == 0 ? LayerFigures::none : std::sqrt(squares / static_cast<double>(elements));
}

// The mean of the gates of each head, whose logarithms [..., H] come in parts.
std::vector<double> mean_gates(const std::vector<Tensor>& parts) {
  const auto heads = static_cast<size_t>(parts.front().dim(-1));
  std::vector<double> sums(heads);
  size_t count = 0;
  for (const Tensor& part : parts) {
    const std::vector<double> logarithms = part.values();
    for (size_t i = 0; i < logarithms.size(); ++i) sums[i % heads] += std::exp(logarithms[i]);
    count += logarithms.size() / heads;
  }
  for (double& sum : sums) sum /= static_cast<double>(count);
  return sums;
}

}  // namespace

size_t LayerWatch::Norms::add(const std::vector<Tensor>& tensors) {
  if (count_ % block == 0)
    blocks_.push_back(Tensor::zeros({static_cast<int64_t>(block), 3}, DType::f64, tensors.front().device()));
  norm_on_device(tensors, blocks_.back().rows(static_cast<int64_t>(count_ % block), 1));
  return count_++;
}

std::vector<double> LayerWatch::Norms::values() const {
  std::vector<double> norms;
  for (const Tensor& three : blocks_) {
    const std::vector<double> numbers = three.values();
    for (size_t i = 0; i < block; ++i) norms.push_back(numbers[3 * i]);
  }
  return norms;
}

LayerWatch::LayerWatch(const Model& model) {
  for (const Parameter& p : model.parameters) {
    if (!p.trainable) continue;
    Layer& its = layer(layer_of(module_of(p.name)));
    its.parameters.push_back(p.value);
    its.before.push_back(p.value.clone());
    if (p.name.ends_with(".scale") && p.value.rank() == 1)
      scales_.emplace_back(module_of(p.name), its.before.back());
  }
  for (Layer& its : layers_) add(its.weight, its.before);
}

LayerWatch::Layer& LayerWatch::layer(const std::string& name) {
  const auto found = std::ranges::find(layers_, name, &Layer::name);
  return found == layers_.end() ? layers_.emplace_back(Layer{.name = name}) : *found;
}

void LayerWatch::add(Sum& sum, const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return;
  sum.places.push_back(norms_.add(tensors));
  for (const Tensor& x : tensors) sum.elements += x.elements();
}

LayerWatch::Part::Part(LayerWatch& watch, const Tape& tape)
    : watch_(watch),
      tape_(tape),
      observer_([this](const ForwardEvent& event) { look_forward(event); },
                [this](const BackwardEvent& event) { look_backward(event); }) {}

void LayerWatch::Part::look_forward(const ForwardEvent& event) {
  const std::string path = ModuleScope::path();
  if (path.empty() || !is_float(event.output.dtype())) return;
  outputs_[layer_of(path)] = {&event.op, tape_.steps().size(), event.output.detach()};
  if (event.op.name == std::string_view("log_sigmoid") && path.ends_with(".gate"))
    watch_.gates_[module_of(path)].push_back(event.output.detach());
}

void LayerWatch::Part::end_forward() {
  const std::vector<Tape::Step>& steps = tape_.steps();
  for (const auto& [name, output] : outputs_) {
    watch_.add(watch_.layer(name).activation, {output.value});
    if (output.step < steps.size() && &*steps[output.step].op == output.op) layer_of_[output.step] = name;
  }
  outputs_.clear();
  next_ = steps.size();
}

// The step that has run now is the last one before next_ whose path is the event's own; its dy is still
// there.
void LayerWatch::Part::look_backward(const BackwardEvent& event) {
  while (next_ > 0 && &tape_.steps()[--next_].path != &event.path) continue;
  const auto found = layer_of_.find(next_);
  if (found == layer_of_.end()) return;
  watch_.add(watch_.layer(found->second).gradient, {tape_.gradient_of_step(next_)});
}

void LayerWatch::look_at_gradients() {
  for (Layer& its : layers_) {
    std::vector<Tensor> gradients;
    for (const Tensor& p : its.parameters)
      if (const Tensor gradient = p.grad(); gradient.defined()) gradients.push_back(gradient);
    add(its.weight_gradient, gradients);
  }
}

void LayerWatch::look_at_update() {
  const NoRecording quiet;
  for (Layer& its : layers_) {
    std::vector<Tensor> changes;
    for (size_t i = 0; i < its.parameters.size(); ++i)
      changes.push_back(subtract(its.parameters[i].detach(), its.before[i]));
    add(its.update, changes);
    its.before.clear();
  }
}

std::vector<LayerFigures> LayerWatch::figures() const {
  const std::vector<double> norms = norms_.values();
  const auto rms = [&](const Sum& sum) {
    double squares = 0;
    for (const size_t place : sum.places) squares += norms[place] * norms[place];
    return root_of_mean(squares, sum.elements);
  };
  std::vector<LayerFigures> all;
  for (const Layer& its : layers_) {
    LayerFigures& f = all.emplace_back(LayerFigures{.layer = its.name});
    f.activation_rms = rms(its.activation);
    f.gradient_rms = rms(its.gradient);
    f.weight_rms = rms(its.weight);
    f.weight_gradient_rms = rms(its.weight_gradient);
    if (f.weight_rms > 0) f.update_ratio = rms(its.update) / f.weight_rms;
  }
  const std::vector<LayerFigures> heads = figures_of_heads();
  all.insert(all.end(), heads.begin(), heads.end());
  return all;
}

std::vector<LayerFigures> LayerWatch::figures_of_heads() const {
  std::vector<LayerFigures> all;
  const auto set = [&](const std::string& module, size_t head, double LayerFigures::*number, double value) {
    const auto is_its = [&](const LayerFigures& f) {
      return f.layer == module && f.head == static_cast<int64_t>(head);
    };
    const auto found = std::ranges::find_if(all, is_its);
    LayerFigures& f =
        found == all.end()
            ? all.emplace_back(LayerFigures{.layer = module, .head = static_cast<int64_t>(head)})
            : *found;
    f.*number = value;
  };
  for (const auto& [module, scale] : scales_) {
    const std::vector<double> scales = scale.values();
    for (size_t h = 0; h < scales.size(); ++h) set(module, h, &LayerFigures::temperature, 1 / scales[h]);
  }
  for (const auto& [module, parts] : gates_) {
    const std::vector<double> gates = mean_gates(parts);
    for (size_t h = 0; h < gates.size(); ++h) set(module, h, &LayerFigures::gate, gates[h]);
  }
  return all;
}

}  // namespace tessera
