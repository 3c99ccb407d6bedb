#include "apps/exporting/onnx_graph.h"

#include <algorithm>

#include "engine/core/error.h"

namespace tessera {

namespace {

// Numbers of the fields and enumerations of onnx.proto (github.com/onnx/onnx, IR version 8).
namespace field {
constexpr int model_ir_version = 1, model_producer = 2, model_producer_version = 3, model_graph = 7,
              model_opset = 8, model_metadata = 14;
constexpr int opset_version = 2;
constexpr int graph_node = 1, graph_name = 2, graph_initializer = 5, graph_input = 11, graph_output = 12;
constexpr int node_input = 1, node_output = 2, node_name = 3, node_op = 4, node_attribute = 5;
constexpr int attribute_name = 1, attribute_f = 2, attribute_i = 3, attribute_s = 4, attribute_ints = 8,
              attribute_type = 20;
constexpr int tensor_dims = 1, tensor_type = 2, tensor_name = 8, tensor_raw = 9;
constexpr int value_name = 1, value_type = 2, type_tensor = 1, tensor_type_elem = 1, tensor_type_shape = 2,
              shape_dim = 1, dim_value = 1, dim_param = 2;
constexpr int entry_key = 1, entry_value = 2;
}  // namespace field

constexpr int type_float = 1, type_int64 = 7, type_bool = 9;
constexpr int attribute_float = 1, attribute_int = 2, attribute_string = 3, attribute_many_ints = 7;
constexpr int ir_version = 8;
constexpr size_t largest_file = 0x7fffffff;  // of a protobuf message

int type_of(DType dtype) { return dtype == DType::i64 ? type_int64 : type_float; }

ProtoMessage tensor_of(const std::string& name, int type, const std::vector<int64_t>& sizes,
                       std::string_view raw) {
  ProtoMessage tensor;
  for (const int64_t size : sizes) tensor.number(field::tensor_dims, size);
  return tensor.number(field::tensor_type, type).text(field::tensor_name, name).text(field::tensor_raw, raw);
}

// "batch" for an axis of one entry an image; an axis of more is a size that no caller needs to know.
ProtoMessage value_of(const std::string& name, int type, const OnnxShape& shape) {
  ProtoMessage axes;
  for (const auto& [size, per_image] : shape) {
    ProtoMessage axis;
    if (per_image)
      axis.text(field::dim_param, size == 1 ? "batch" : "batch * " + std::to_string(size));
    else
      axis.number(field::dim_value, size);
    axes.message(field::shape_dim, axis);
  }
  const ProtoMessage tensor =
      ProtoMessage().number(field::tensor_type_elem, type).message(field::tensor_type_shape, axes);
  return ProtoMessage()
      .text(field::value_name, name)
      .message(field::value_type, ProtoMessage().message(field::type_tensor, tensor));
}

ProtoMessage attribute_of(const OnnxAttribute& attribute) {
  ProtoMessage message;
  message.text(field::attribute_name, attribute.name);
  if (const auto* i = std::get_if<int64_t>(&attribute.value))
    return message.number(field::attribute_i, *i).number(field::attribute_type, attribute_int);
  if (const auto* f = std::get_if<float>(&attribute.value))
    return message.real(field::attribute_f, *f).number(field::attribute_type, attribute_float);
  if (const auto* s = std::get_if<std::string>(&attribute.value))
    return message.text(field::attribute_s, *s).number(field::attribute_type, attribute_string);
  for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value))
    message.number(field::attribute_ints, each);
  return message.number(field::attribute_type, attribute_many_ints);
}

bool is_identity(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}

}  // namespace

std::string OnnxGraph::unique(const std::string& op) {
  const std::string name = module_.empty() ? op : module_ + "." + op;
  std::string candidate = name;
  for (int number = 2; !names_.insert(candidate).second; ++number)
    candidate = name + "." + std::to_string(number);
  return candidate;
}

void OnnxGraph::input(const std::string& name, DType dtype, const OnnxShape& shape) {
  check(names_.insert(name).second, "onnx: two inputs are called ", name);
  if (first_input_.empty()) first_input_ = name;
  graph_.message(field::graph_input, value_of(name, type_of(dtype), shape));
}

void OnnxGraph::output(const std::string& name, const std::string& value, const OnnxShape& shape) {
  graph_.message(field::graph_node, ProtoMessage()
                                        .text(field::node_input, value)
                                        .text(field::node_output, name)
                                        .text(field::node_name, name)
                                        .text(field::node_op, "Identity"));
  graph_.message(field::graph_output, value_of(name, type_float, shape));
}

std::string OnnxGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                            const std::vector<OnnxAttribute>& attributes) {
  const std::string name = unique(op);
  ProtoMessage node;
  for (const std::string& input : inputs) node.text(field::node_input, input);
  node.text(field::node_output, name).text(field::node_name, name).text(field::node_op, op);
  for (const OnnxAttribute& attribute : attributes)
    node.message(field::node_attribute, attribute_of(attribute));
  graph_.message(field::graph_node, node);
  return name;
}

std::string OnnxGraph::constant(const std::string& name, const Tensor& x) {
  if (!constants_.insert(name).second) return name;
  names_.insert(name);
  const Tensor stored = x.dtype() == DType::i64 ? x : x.to(DType::f32);
  const std::string_view raw(static_cast<const char*>(stored.raw()), stored.bytes());
  graph_.message(field::graph_initializer,
                 tensor_of(name, type_of(stored.dtype()), {x.shape().begin(), x.shape().end()}, raw));
  return name;
}

std::string OnnxGraph::integers(const std::vector<int64_t>& values) {
  std::string& name = integers_[values];
  if (name.empty()) name = constant(Tensor::from(values, {std::ssize(values)}));
  return name;
}

std::string OnnxGraph::number(double value) {
  std::string& name = numbers_[value];
  if (name.empty()) name = constant(Tensor::full({}, value));
  return name;
}

std::string OnnxGraph::truths(const std::vector<bool>& values, const std::vector<int64_t>& sizes) {
  const std::string name = unique("constant");
  const std::string raw(values.begin(), values.end());
  graph_.message(field::graph_initializer, tensor_of(name, type_bool, sizes, raw));
  return name;
}

std::string OnnxGraph::permute(const std::string& x, const std::vector<int64_t>& order) {
  std::string from = x;
  std::vector<int64_t> whole = order;
  if (const auto found = permuted_.find(x); found != permuted_.end()) {
    from = found->second.first;
    for (int64_t& axis : whole) axis = found->second.second[static_cast<size_t>(axis)];
  }
  if (is_identity(whole)) return from;
  const std::string y = node("Transpose", {from}, {{"perm", whole}});
  permuted_[y] = {from, whole};
  return y;
}

std::string OnnxGraph::reshape(const std::string& x, const OnnxShape& from, const OnnxShape& to) {
  if (from == to) return x;
  std::vector<int64_t> sizes;
  for (const auto& [size, per_image] : to) sizes.push_back(per_image ? -1 : size);
  const auto open = std::ranges::count(sizes, -1);
  return node("Reshape", {x, open > 1 ? this->sizes(to) : integers(sizes)});
}

std::string OnnxGraph::slice(const std::string& x, int64_t axis, int64_t first, int64_t count, int64_t step) {
  return node("Slice",
              {x, integers({first}), integers({first + count * step}), integers({axis}), integers({step})});
}

std::string OnnxGraph::sizes(const OnnxShape& shape) {
  std::vector<std::string> pieces;
  for (const auto& [size, per_image] : shape) {
    if (!per_image) {
      pieces.push_back(integers({size}));
      continue;
    }
    if (batch_.empty()) batch_ = node("Shape", {first_input_}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
    pieces.push_back(size == 1 ? batch_ : node("Mul", {batch_, integers({size})}));
  }
  return node("Concat", pieces, {{"axis", int64_t{0}}});
}

std::string OnnxGraph::file(const std::string& name,
                            const std::map<std::string, std::string>& metadata) const {
  ProtoMessage graph = graph_;
  graph.text(field::graph_name, name);
  ProtoMessage model;
  model.number(field::model_ir_version, ir_version)
      .text(field::model_producer, "tessera")
      .text(field::model_producer_version, TESSERA_VERSION)
      .message(field::model_graph, graph)
      .message(field::model_opset, ProtoMessage().number(field::opset_version, opset));
  for (const auto& [key, value] : metadata)
    model.message(field::model_metadata,
                  ProtoMessage().text(field::entry_key, key).text(field::entry_value, value));
  check(model.bytes().size() <= largest_file, "onnx: the file would have ", model.bytes().size(),
        " bytes, and a protobuf message holds 2 GiB; export safetensors");
  return model.bytes();
}

}  // namespace tessera
