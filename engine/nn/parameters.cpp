#include "engine/nn/parameters.h"

#include "engine/core/error.h"

namespace tessera {

namespace {

std::string listed(const std::vector<std::string>& lines, const char* what) {
  if (lines.empty()) return "";
  std::string text = "\n  " + std::string(what) + ":";
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

}  // namespace

const Tensor* Parameters::find(std::string_view name) const {
  const auto at = index_.find(std::string(name));
  return at == index_.end() ? nullptr : &all_[at->second].value;
}

int64_t Parameters::trainable_count() const {
  int64_t count = 0;
  for (const Parameter& p : all_) count += p.trainable ? p.value.elements() : 0;
  return count;
}

NamedTensors Parameters::state() const {
  NamedTensors state;
  for (const Parameter& p : all_) state.emplace_back(p.name, p.value.detach());
  return state;
}

void Parameters::load(const NamedTensors& state, const std::string& where) const {
  std::vector<std::string> missing, unknown, other_shape, twice;
  std::unordered_map<std::string, Tensor> given;
  for (const auto& [name, value] : state) {
    const Tensor* own = find(name);
    if (!given.emplace(name, value).second)
      twice.push_back(name);
    else if (!own)
      unknown.push_back(name + " " + value.shape().text());
    else if (own->shape() != value.shape())
      other_shape.push_back(name + ": " + value.shape().text() + " in the file, the model has " +
                            own->shape().text());
  }
  for (const Parameter& p : all_)
    if (!given.contains(p.name)) missing.push_back(p.name + " " + p.value.shape().text());
  if (!missing.empty() || !unknown.empty() || !other_shape.empty() || !twice.empty())
    fail(where, ": not this model's weights", listed(missing, "missing"), listed(unknown, "not in the model"),
         listed(other_shape, "of another shape"), listed(twice, "given twice"));
  for (const Parameter& p : all_)
    p.value.copy_from(given.at(p.name).to(p.value.dtype()).to(p.value.device()));
}

void Parameters::zero_grad() const {
  for (const Parameter& p : all_) p.value.zero_grad();
}

void Parameters::add(Parameter parameter) {
  check(index_.emplace(parameter.name, all_.size()).second, "parameters: two are called '", parameter.name,
        "'");
  all_.push_back(std::move(parameter));
}

}  // namespace tessera
