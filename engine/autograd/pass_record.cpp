#include "engine/autograd/pass_record.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

std::string joined(std::string_view module, std::string_view role) {
  return module.empty() ? std::string(role) : std::string(module) + "." + std::string(role);
}

// "blocks.0.attn" for "blocks.0.attn.qkv"; empty for "head".
std::string_view parent_of(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

bool is_within(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

}  // namespace

// Builds a record from a tape.
class PassRecorder {
 public:
  PassRecorder(PassRecord& record, const Tape& tape, const NamedTensors& known)
      : record_(record), tape_(tape), steps_(tape.steps()) {
    for (const auto& [name, tensor] : known) {
      if (const int slot = tape.slot_of_known(tensor); slot >= 0)
        known_slots_.emplace(slot, Known{name, tensor.detach()});
      if (tensor.defined()) known_memory_.emplace(tensor.raw(), name);
    }
    for (const Tape::Step& step : steps_)
      if (!step.role.empty()) given_.insert(joined(step.path, step.role));
  }

  void run() {
    for (size_t i = 0; i < steps_.size(); ++i) add_step(i);
    for (size_t i = 0; i < steps_.size(); ++i) add_aliases(i);
  }

 private:
  void add_step(size_t i) {
    const Tape::Step& step = steps_[i];
    PassRecord::Step added{&*step.op, step.path, {}, {}, 0, step.attributes};
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const Tensor& operand = step.operands[k];
      added.inputs.push_back(operand.defined() ? place_of(operand, step.inputs[k], step)
                                               : PassRecord::left_out);
      added.shapes.push_back(operand.defined() ? operand.shape() : Shape());
    }
    added.output = record_.values_.size();
    by_slot_[step.output] = added.output;
    const auto known = known_slots_.find(step.output);
    const std::string name = known != known_slots_.end() ? known->second.name : own_name(i);
    record_.values_.push_back(
        {unique(name), {}, PassRecord::Kind::computed, step.result, tape_.gradient_of_step(i)});
    shape_gradient();
    record_.steps_.push_back(std::move(added));
  }

  // The value that a step reads; one that no step made is a leaf or a constant, and is added here.
  size_t place_of(const Tensor& operand, int slot, const Tape::Step& step) {
    if (slot >= 0) {
      if (const auto found = by_slot_.find(slot); found != by_slot_.end()) return found->second;
      const auto known = known_slots_.find(slot);
      const bool named = known != known_slots_.end();
      // A step may read a parameter under another shape; the record has it under its own.
      add_source(named ? known->second.tensor : operand.detach(),
                 named ? known->second.name : joined(step.path, "leaf"), PassRecord::Kind::leaf,
                 operand.grad());
      return by_slot_[slot] = record_.values_.size() - 1;
    }
    const auto key = std::pair(operand.raw(), operand.elements());
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    const auto known = known_memory_.find(operand.raw());
    add_source(operand.detach(),
               known != known_memory_.end() ? known->second
                                            : joined(step.path, std::string(step.op->name) + ".constant"),
               PassRecord::Kind::constant, {});
    return constants_[key] = record_.values_.size() - 1;
  }

  void add_source(const Tensor& value, const std::string& name, PassRecord::Kind kind,
                  const Tensor& gradient) {
    record_.values_.push_back({unique(name), {}, kind, value, gradient});
    shape_gradient();
  }

  // A gradient comes in the shape that its slot was first seen in, of as many elements.
  void shape_gradient() {
    PassRecord::Value& value = record_.values_.back();
    if (value.gradient.defined()) value.gradient = value.gradient.reshape(value.value.shape());
  }

  // Whether step i is the last of those that `module` runs without a break.
  bool is_last_of(size_t i, std::string_view module) const {
    return i + 1 == steps_.size() || !is_within(steps_[i + 1].path, module);
  }

  std::string own_name(size_t i) const {
    const Tape::Step& step = steps_[i];
    if (!step.role.empty()) return joined(step.path, step.role);
    const bool last =
        !step.path.empty() && is_last_of(i, step.path) && !given_.contains(joined(step.path, "out"));
    return joined(step.path, last ? "out" : step.op->name);
  }

  void add_aliases(size_t i) {
    PassRecord::Value& value = record_.values_[record_.steps_[i].output];
    for (std::string_view module = steps_[i].path; !module.empty(); module = parent_of(module)) {
      if (!is_last_of(i, module)) return;
      const std::string alias = joined(module, "out");
      if (alias != value.name && !given_.contains(alias)) value.aliases.push_back(unique(alias));
    }
  }

  std::string unique(const std::string& name) {
    std::string candidate = name;
    for (int number = 2; !names_.insert(candidate).second; ++number)
      candidate = name + "." + std::to_string(number);
    return candidate;
  }

  PassRecord& record_;
  const Tape& tape_;
  const std::vector<Tape::Step>& steps_;
  struct Known {
    std::string name;
    Tensor tensor;
  };

  std::map<int, Known> known_slots_;
  std::map<const void*, std::string> known_memory_;
  std::map<int, size_t> by_slot_;
  std::map<std::pair<const void*, int64_t>, size_t> constants_;
  std::set<std::string> given_;  // names by name_value(), which no other value gets first
  std::set<std::string> names_;
};

PassRecord::PassRecord(const Tape& tape, const NamedTensors& known) {
  for (const Tape::Step& step : tape.steps())
    check(step.result.defined(), "record: ", step.op->name,
          " of this tape holds no values; call keep_all() before the first op");
  PassRecorder(*this, tape, known).run();
}

void PassRecord::convert(DType dtype) {
  for (Value& value : values_)
    for (Tensor* x : {&value.value, &value.gradient})
      if (x->defined() && is_float(x->dtype())) *x = x->to(dtype);
}

const PassRecord::Value& PassRecord::value(const std::string& name) const {
  std::vector<std::string> names;
  for (const Value& value : values_) {
    if (value.name == name || std::ranges::find(value.aliases, name) != value.aliases.end()) return value;
    names.push_back(value.name);
    names.insert(names.end(), value.aliases.begin(), value.aliases.end());
  }
  fail("record: no value '", name, "'", did_you_mean(name, names));
}

PassRecord PassRecord::part(const std::function<bool(const Step&)>& keep,
                            const std::vector<std::string>& also) const {
  std::vector<bool> wanted(values_.size(), false);
  std::vector<int64_t> missed(values_.size(), 0);  // readers that are left out
  for (const Step& step : steps_) {
    const bool kept = keep(step);
    if (kept) wanted[step.output] = true;
    for (const size_t input : step.inputs) {
      if (input == left_out) continue;
      if (kept)
        wanted[input] = true;
      else
        ++missed[input];
    }
  }
  PassRecord result;
  std::vector<size_t> place(values_.size(), left_out);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!wanted[i] && std::ranges::find(also, values_[i].name) == also.end()) continue;
    place[i] = result.values_.size();
    result.values_.push_back(values_[i]);
    result.values_.back().readers_left_out += missed[i];
  }
  for (const Step& step : steps_) {
    if (!keep(step)) continue;
    Step& kept = result.steps_.emplace_back(step);
    kept.output = place[step.output];
    for (size_t& input : kept.inputs)
      if (input != left_out) input = place[input];
  }
  return result;
}

}  // namespace tessera
