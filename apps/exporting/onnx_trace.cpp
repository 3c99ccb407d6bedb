#include "apps/exporting/onnx_trace.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "apps/exporting/onnx_ops.h"
#include "engine/autograd/tape.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr std::array<int64_t, 2> batches{2, 3};

// One recorded run. The tape holds every value, so that no memory is used twice while it lives.
struct Run {
  Run(const TracedProgram& program, int64_t images) : inputs(program.inputs(images)) {
    for (TracedInput& input : inputs)
      if (is_float(input.value.dtype())) input.value.require_grad();
    tape = std::make_unique<Tape>();
    tape->keep_all();
    output = program.run(inputs);
    slot = tape->slot_of_known(output);
    check(slot >= 0, "onnx: the output of the model was not recorded");
  }

  std::vector<TracedInput> inputs;
  std::unique_ptr<Tape> tape;
  Tensor output;
  int slot = -1;
};

class Tracer {
 public:
  Tracer(OnnxGraph& graph, const TracedProgram& program, const Parameters& parameters)
      : graph_(graph), program_(program), small_(program, batches[0]), large_(program, batches[1]) {
    for (const Parameter& p : parameters) parameters_[p.value.raw()] = &p;
    check(steps(small_).size() == steps(large_).size(), "onnx: the model runs other ops for other batches");
    for (size_t i = 0; i < small_.inputs.size(); ++i) {
      const auto& [name, value] = small_.inputs[i];
      graph_.input(name, value.dtype(), shape_of(value.shape(), large_.inputs[i].value.shape()));
    }
  }

  void run(const std::string& output) {
    const std::vector<bool> needed = needed_steps();
    for (size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) add(i);
    graph_.enter("");
    const Known& last = known_.at(small_.slot);
    const OnnxShape shape = shape_of(small_.output.shape(), large_.output.shape());
    graph_.output(output, graph_.reshape(last.name, last.shape, shape), shape);
  }

 private:
  struct Known {
    std::string name;
    OnnxShape shape;
  };

  static const std::vector<Tape::Step>& steps(const Run& run) { return run.tape->steps(); }

  // The steps that the output depends on.
  std::vector<bool> needed_steps() const {
    const auto& all = steps(small_);
    std::vector<bool> needed(all.size());
    std::set<int> slots{small_.slot};
    for (size_t i = all.size(); i-- > 0;) {
      needed[i] = slots.contains(all[i].output);
      if (needed[i]) slots.insert(all[i].inputs.begin(), all[i].inputs.end());
    }
    return needed;
  }

  [[noreturn]] void refuse(const char* why) const {
    fail("onnx: ", step_->op->name, step_->path.empty() ? "" : " of ", step_->path, " ", why);
  }

  OnnxShape shape_of(const Shape& small, const Shape& large) const {
    OnnxShape shape;
    for (int i = 0; i < small.rank(); ++i) {
      const bool per_image = small[i] != large[i];
      const int64_t each = small[i] / batches[0];
      if (per_image && (each * batches[0] != small[i] || each * batches[1] != large[i]))
        refuse("has a size that is no multiple of the batch");
      shape.push_back({per_image ? each : small[i], per_image});
    }
    return shape;
  }

  void add(size_t i) {
    step_ = &steps(small_)[i];
    const Tape::Step& other = steps(large_)[i];
    if (step_->op->name != other.op->name) refuse("is another op for another batch");
    graph_.enter(step_->path);
    OnnxStep said{.op = std::string(step_->op->name),
                  .inputs = {},
                  .shapes = {},
                  .out = {},
                  .attributes = step_->attributes};
    for (size_t k = 0; k < step_->operands.size(); ++k) {
      const Tensor &small = step_->operands[k], &large = other.operands[k];
      said.shapes.push_back(small.defined() ? shape_of(small.shape(), large.shape()) : OnnxShape());
      said.inputs.push_back(small.defined() ? read(step_->inputs[k], small, large, said.shapes.back()) : "");
    }
    if (said.op == "gather")
      if (const auto index = input_like(said.tensor("index"))) said.inputs.push_back(*index);
    said.out = shape_of(step_->result.shape(), other.result.shape());
    known_[step_->output] = {add_onnx(graph_, said), said.out};
  }

  // The name of an operand in the shape in which the step reads it.
  std::string read(int slot, const Tensor& small, const Tensor& large, const OnnxShape& shape) {
    if (slot < 0) return constant(small, large);
    auto found = known_.find(slot);
    if (found == known_.end()) found = known_.emplace(slot, leaf(small)).first;
    return graph_.reshape(found->second.name, found->second.shape, shape);
  }

  Known leaf(const Tensor& x) {
    for (size_t i = 0; i < small_.inputs.size(); ++i)
      if (small_.inputs[i].value.raw() == x.raw())
        return {small_.inputs[i].name,
                shape_of(small_.inputs[i].value.shape(), large_.inputs[i].value.shape())};
    const auto found = parameters_.find(x.raw());
    if (found == parameters_.end()) refuse("reads what is neither an input nor a parameter");
    const Tensor& value = found->second->value;
    return {graph_.constant(found->second->name, value), shape_of(value.shape(), value.shape())};
  }

  std::string constant(const Tensor& small, const Tensor& large) {
    if (small.shape() != large.shape()) return constant_of_batch(small, large);
    const auto found = parameters_.find(small.raw());
    if (found != parameters_.end() && found->second->value.shape() == small.shape())
      return graph_.constant(found->second->name, small);
    std::string& name = constants_[{small.raw(), small.shape().text()}];
    if (name.empty()) name = graph_.constant(small);
    return name;
  }

  // A constant that is the same for each image, or the rows of a table that an input chooses.
  std::string constant_of_batch(const Tensor& small, const Tensor& large) {
    for (const auto& [name, index, rows] : program_.tables)
      if (const TracedInput& input = input_named(index); is_rows(small, rows, input.value.integers()))
        return graph_.node("Gather", {graph_.constant(name, rows), index}, {{"axis", int64_t{0}}});
    const OnnxShape shape = shape_of(small.shape(), large.shape());
    const int64_t each = shape[0].size;
    if (!shape[0].per_image) refuse("reads a constant that depends on the batch");
    const Tensor one = small.rows(0, each);
    for (int64_t image = 1; image < batches[0]; ++image)
      if (std::memcmp(small.rows(image * each, each).raw(), one.raw(), one.bytes()) != 0)
        refuse("reads a constant that is another for each image");
    OnnxShape repeats(shape.size(), OnnxAxis{1});
    repeats[0].per_image = true;
    return graph_.node("Tile", {graph_.constant(one), graph_.sizes(repeats)});
  }

  static bool is_rows(const Tensor& x, const Tensor& table, const std::vector<int64_t>& index) {
    const auto count = static_cast<size_t>(x.dim(0));
    if (index.size() != count || x.dtype() != table.dtype() ||
        x.bytes() * static_cast<size_t>(table.dim(0)) != table.bytes() * count)
      return false;
    for (size_t i = 0; i < count; ++i) {
      const Tensor row = table.rows(index[i], 1);
      if (std::memcmp(x.rows(static_cast<int64_t>(i), 1).raw(), row.raw(), row.bytes()) != 0) return false;
    }
    return true;
  }

  const TracedInput& input_named(const std::string& name) const {
    return *std::ranges::find(small_.inputs, name, &TracedInput::name);
  }

  // The input of the graph that holds these integers.
  std::optional<std::string> input_like(const Tensor& index) const {
    for (const auto& [name, value] : small_.inputs)
      if (value.dtype() == DType::i64 && value.integers() == index.integers()) return name;
    return {};
  }

  OnnxGraph& graph_;
  const TracedProgram& program_;
  Run small_, large_;
  const Tape::Step* step_ = nullptr;  // that is being added
  std::map<const void*, const Parameter*> parameters_;
  std::map<int, Known> known_;  // by slot
  std::map<std::pair<const void*, std::string>, std::string> constants_;
};

}  // namespace

void trace_onnx(OnnxGraph& graph, const TracedProgram& program, const Parameters& parameters,
                const std::string& output) {
  Tracer(graph, program, parameters).run(output);
}

}  // namespace tessera
