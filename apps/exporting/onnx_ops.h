#pragma once

// How each op of the catalog is said in ONNX operators.

#include <string>
#include <vector>

#include "apps/exporting/onnx_graph.h"
#include "engine/autograd/attribute.h"

namespace tessera {

// A recorded step, its inputs already in the graph.
struct OnnxStep {
  std::string op;
  std::vector<std::string> inputs;  // empty for an optional one that was left out
  std::vector<OnnxShape> shapes;    // of the inputs, as the op reads them
  OnnxShape out;
  const Attributes& attributes;

  double number(const std::string& name) const;
  int64_t whole(const std::string& name) const { return static_cast<int64_t>(number(name)); }
  const std::vector<int64_t>& integers(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Tensor& tensor(const std::string& name) const;
  bool has(size_t input) const { return input < inputs.size() && !inputs[input].empty(); }
};

// Adds the step to the graph, and returns the name of its output, of the shape step.out. Fails for an op that
// only training runs, and names it.
std::string add_onnx(OnnxGraph& graph, const OnnxStep& step);

// Whether add_onnx() takes this op.
bool has_onnx(const std::string& op);

}  // namespace tessera
