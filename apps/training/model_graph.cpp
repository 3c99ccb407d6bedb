#include "apps/training/model_graph.h"

#include <algorithm>
#include <set>

#include "apps/training/footprint.h"
#include "engine/autograd/pass_record.h"
#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/io/protobuf.h"
#include "models/model.h"

namespace tessera {

namespace {

// Fields of tensorflow/core/framework: graph.proto, node_def.proto, attr_value.proto, tensor_shape.proto.
enum Field {
  graph_node = 1,
  node_name = 1,
  node_op = 2,
  node_input = 3,
  node_attribute = 5,
  map_key = 1,
  map_value = 2,
  value_list = 1,
  list_shape = 7,
  shape_dimension = 2,
  dimension_size = 1
};

std::string with_slashes(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

ProtoMessage shapes_of(const Shape& shape) {
  ProtoMessage sizes;
  for (const int64_t size : shape)
    sizes.message(shape_dimension, ProtoMessage().number(dimension_size, size));
  const ProtoMessage value = ProtoMessage().message(value_list, ProtoMessage().message(list_shape, sizes));
  return ProtoMessage().text(map_key, "_output_shapes").message(map_value, value);
}

ProtoMessage node_of(const PassRecord::Value& value, const std::string& op) {
  ProtoMessage node;
  node.text(node_name, with_slashes(value.name)).text(node_op, op);
  return node.message(node_attribute, shapes_of(value.value.shape()));
}

}  // namespace

std::string graph_of(const Json& config) {
  const DryRun dry;
  const Model model = build(config);
  NamedTensors known;
  for (const Parameter& p : model.parameters) known.emplace_back(p.name, p.value);
  const TensorMap inputs = dry_inputs(model, 2);
  for (const auto& [name, value] : inputs) known.emplace_back(name, value);
  Pass pass{.training = true};
  Tape tape;
  tape.keep_all();
  tape.backward(model.training_loss(inputs, {}, pass).loss);
  const PassRecord record(tape, known);

  ProtoMessage graph;
  const std::vector<PassRecord::Value>& values = record.values();
  for (const PassRecord::Value& value : values)
    if (value.kind != PassRecord::Kind::computed)
      graph.message(graph_node, node_of(value, value.kind == PassRecord::Kind::leaf ? "Parameter" : "Const"));
  for (const PassRecord::Step& step : record.steps()) {
    ProtoMessage node = node_of(values[step.output], std::string(step.op->name));
    for (const size_t input : step.inputs)
      if (input != PassRecord::left_out) node.text(node_input, with_slashes(values[input].name));
    graph.message(graph_node, node);
  }
  return graph.bytes();
}

}  // namespace tessera
