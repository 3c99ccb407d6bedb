#include "apps/training/number_watch.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

namespace tessera {

namespace {

struct Counts {
  int64_t nan = 0, infinite = 0, first = -1;
};

template <class T> Counts count(const T* x, int64_t n, bool mask) {
  Counts counts;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(x[i]) || (mask && std::isinf(x[i]) && x[i] < 0)) continue;
    ++(std::isnan(x[i]) ? counts.nan : counts.infinite);
    if (counts.first < 0) counts.first = i;
  }
  return counts;
}

Shape index_of(int64_t element, const Shape& shape) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = element % shape[axis];
    element /= shape[axis];
  }
  return Shape(index);
}

std::string place_of(const std::string& path) { return path.empty() ? "" : " in " + path; }

std::string text_of(const Counts& counts, int64_t n) {
  if (counts.infinite == 0) return fmt::format("{} of its {} numbers are NaN", counts.nan, n);
  if (counts.nan == 0) return fmt::format("{} of its {} numbers are infinite", counts.infinite, n);
  return fmt::format("{} of its {} numbers are NaN and {} infinite", counts.nan, n, counts.infinite);
}

}  // namespace

std::optional<std::string> not_finite(const Tensor& x, bool mask) {
  if (!x.defined() || x.dtype() == DType::i64 || x.dtype() == DType::u8) return std::nullopt;
  const bool wide = x.dtype() == DType::f64;
  const Tensor y = x.to(Device::cpu).to(wide ? DType::f64 : DType::f32);
  const int64_t n = y.elements();
  const Counts counts = wide ? count(y.data<double>(), n, mask) : count(y.data<float>(), n, mask);
  if (counts.first < 0) return std::nullopt;
  return fmt::format("{}, the first at {}", text_of(counts, n), index_of(counts.first, y.shape()).text());
}

std::optional<std::string> first_not_finite(const NamedTensors& tensors) {
  for (const auto& [name, value] : tensors)
    if (const auto what = not_finite(value))
      return fmt::format("'{}', {}: {}", name, value.shape().text(), *what);
  return std::nullopt;
}

NumberWatch::NumberWatch(const Parameters& parameters)
    : parameters_(parameters),
      observer_([this](const ForwardEvent& event) { look_forward(event); },
                [this](const BackwardEvent& event) { look_backward(event); }) {}

void NumberWatch::watch_backward(const Tape& tape, const Tensor& loss) {
  tape_ = &tape;
  tape_number_ = loss.place().tape;
  step_ = tape.steps().size();
}

void NumberWatch::look_forward(const ForwardEvent& event) {
  if (found_) return;
  if (const auto what = not_finite(event.output, event.op.name == "mask_diagonal"))
    found_ = fmt::format("{}{} gave {}: {}", event.op.name, place_of(ModuleScope::path()),
                         event.output.shape().text(), *what);
}

void NumberWatch::look_backward(const BackwardEvent& event) {
  if (found_ || !tape_) return;
  const auto& steps = tape_->steps();
  while (step_ > 0 && &steps[--step_].path != &event.path) continue;
  for (const int slot : steps[step_].inputs) {
    if (slot < 0) continue;
    const auto [name, gradient] = gradient_in(slot);
    const auto what = not_finite(gradient);
    if (!what) continue;
    found_ = fmt::format("the backward of {}{} gave the gradient of {}, {}: {}", event.op.name,
                         place_of(event.path), name, gradient.shape().text(), *what);
    return;
  }
}

std::pair<std::string, Tensor> NumberWatch::gradient_in(int slot) const {
  for (const Parameter& p : parameters_) {
    if (!p.trainable) continue;
    const Tensor::Place place = p.value.leaf()->place;
    if (place.tape == tape_number_ && place.slot == slot) return {p.name, p.value.grad()};
  }
  for (size_t i = step_; i-- > 0;)
    if (const Tape::Step& maker = tape_->steps()[i]; maker.output == slot)
      return {fmt::format("the output of {}{}", maker.op->name, place_of(maker.path)),
              tape_->gradient_of_step(i)};
  return {"an input", Tensor()};
}

}  // namespace tessera
