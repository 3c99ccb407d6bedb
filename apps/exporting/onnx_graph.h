#pragma once

// A graph of ONNX operators (onnx.ai/onnx/operators, opset 17) while it is built, and the bytes of its file.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/io/protobuf.h"

namespace tessera {

// An axis of a value: `size` entries, or as many for each image of the batch.
struct OnnxAxis {
  int64_t size = 1;
  bool per_image = false;
  bool operator==(const OnnxAxis&) const = default;
};
using OnnxShape = std::vector<OnnxAxis>;

// An attribute of an operator.
struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  // Declares a tensor that the caller gives, of f32 or i64. The first input's first axis is the batch.
  void input(const std::string& name, DType dtype, const OnnxShape& shape);
  void output(const std::string& name, const std::string& value, const OnnxShape& shape);

  // Names what is added from now on: "blocks.0.attn.MatMul".
  void enter(const std::string& module) { module_ = module; }

  // Adds a node, and returns the name of its only output. An empty input is an optional one left out.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttribute>& attributes = {});

  // Constants. A tensor is stored as f32, or as i64, once for each name.
  std::string constant(const std::string& name, const Tensor& x);
  std::string constant(const Tensor& x) { return constant(unique("constant"), x); }
  std::string integers(const std::vector<int64_t>& values);
  std::string number(double value);
  std::string truths(const std::vector<bool>& values, const std::vector<int64_t>& sizes);

  // Moves. A permutation after its own inverse is left out, and a shape that stays.
  std::string permute(const std::string& x, const std::vector<int64_t>& order);
  std::string reshape(const std::string& x, const OnnxShape& from, const OnnxShape& to);
  std::string slice(const std::string& x, int64_t axis, int64_t first, int64_t count, int64_t step = 1);
  // The sizes of a shape as a tensor, computed from the batch where it depends on it.
  std::string sizes(const OnnxShape& shape);

  // The whole file, with these entries in its metadata.
  std::string file(const std::string& name, const std::map<std::string, std::string>& metadata) const;

  static constexpr int opset = 17;

 private:
  std::string unique(const std::string& op);

  ProtoMessage graph_;
  std::string module_, batch_, first_input_;
  std::set<std::string> names_, constants_;
  std::map<std::vector<int64_t>, std::string> integers_;
  std::map<double, std::string> numbers_;
  std::map<std::string, std::pair<std::string, std::vector<int64_t>>> permuted_;  // from what, in which order
};

}  // namespace tessera
