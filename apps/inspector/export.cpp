#include "apps/inspector/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

const char* name_of(PassRecord::Kind kind) {
  switch (kind) {
    case PassRecord::Kind::leaf:
      return "leaf";
    case PassRecord::Kind::constant:
      return "constant";
    case PassRecord::Kind::computed:
      return "computed";
  }
  return "";
}

Json shape_json(const Shape& shape) {
  Json sizes = Json::array();
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

// The shortest text that reads back as the same number of the tensor's type.
std::string number_text(double value, DType dtype) {
  return dtype == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

struct AttributeJson {
  Json operator()(double value) const { return number_json(value); }
  Json operator()(const std::vector<int64_t>& values) const { return values; }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const Tensor& x) const { return tensor_json(x); }
};

// "blocks.0.attn" and "matmul" of "blocks.0.attn.matmul.2", a module and a role in it.
std::pair<std::string, std::string> module_and_role(std::string name) {
  const auto cut_last = [&] {
    const size_t dot = name.rfind('.');
    const std::string last = name.substr(dot == std::string::npos ? 0 : dot + 1);
    name.resize(dot == std::string::npos ? 0 : dot);
    return last;
  };
  std::string role = cut_last();
  if (role.find_first_not_of("0123456789") == std::string::npos) role = cut_last();
  return {name, role};
}

// The number of heads of the attention in whose module the value lies, as its scores [B, H, N, N] tell; 0
// outside of one.
int64_t heads_beside(const PassRecord& record, const std::string& name) {
  const std::string module = module_and_role(name).first;
  const std::string scores = module.empty() ? "scores" : module + ".scores";
  for (const PassRecord::Value& value : record.values())
    if (value.name == scores && value.value.rank() >= 3) return value.value.dim(value.value.rank() - 3);
  return 0;
}

// A value that attention permutes and gives no name of its own has its tokens before its heads, or is about
// to.
bool is_tokens_first(const std::string& name) { return module_and_role(name).second == "permute"; }

}  // namespace

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json rows_of_values(const PassRecord& record) {
  std::vector<std::string> ops(record.values().size());
  for (const PassRecord::Step& step : record.steps()) ops[step.output] = step.op->name;
  Json rows = Json::array();
  for (size_t i = 0; i < record.values().size(); ++i) {
    const PassRecord::Value& value = record.values()[i];
    rows.push_back({{"name", value.name},
                    {"kind", name_of(value.kind)},
                    {"op", ops[i].empty() ? Json() : Json(ops[i])},
                    {"shape", shape_json(value.value.shape())},
                    {"dtype", name(value.value.dtype())},
                    {"gradient", value.gradient.defined()},
                    {"aliases", value.aliases}});
    if (value.readers_left_out > 0) rows.back()["readers_left_out"] = value.readers_left_out;
  }
  return rows;
}

Json json_of_pass(const PassRecord& record) {
  Json steps = Json::array();
  for (const PassRecord::Step& step : record.steps()) {
    Json reads = Json::array(), shapes = Json::array(), attributes = Json::object();
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const size_t i = step.inputs[k];
      reads.push_back(i == PassRecord::left_out ? Json() : Json(record.values()[i].name));
      shapes.push_back(i == PassRecord::left_out ? Json() : shape_json(step.shapes[k]));
    }
    for (const Attribute& attribute : step.attributes)
      attributes[attribute.name] = std::visit(AttributeJson(), attribute.value);
    steps.push_back({{"op", step.op->name},
                     {"module", step.module},
                     {"reads", reads},
                     {"shapes", shapes},
                     {"attributes", attributes},
                     {"makes", record.values()[step.output].name},
                     {"forward", step.op->forward},
                     {"backward", step.op->backward}});
  }
  return {{"format", "tessera pass 1"}, {"values", rows_of_values(record)}, {"steps", steps}};
}

void export_pass(const PassRecord& record, const fs::path& folder, const Json& facts) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, folder.string(), ": the folder cannot be made: ", error.message());
  NamedTensors values, gradients;
  for (const PassRecord::Value& value : record.values()) {
    values.emplace_back(value.name, value.value);
    if (value.gradient.defined()) gradients.emplace_back(value.name, value.gradient);
  }
  write_safetensors(folder / "values.safetensors", values);
  write_safetensors(folder / "gradients.safetensors", gradients);
  Json pass = json_of_pass(record);
  pass.update(facts);
  write_file_atomically(folder / "pass.json", pass.dump(1) + "\n");
}

Tensor head_of(const Tensor& x, int64_t head, const PassRecord& record, const PassRecord::Value& value) {
  const int64_t heads = heads_beside(record, value.name);
  const int axis = x.rank() - 3;
  const bool has_heads = axis >= 1 && heads > 0 && x.dim(axis) == heads && !is_tokens_first(value.name);
  check(has_heads, "inspect: --head ", head, ": ", value.name, " ", x.shape(),
        " has no axis of heads; attention's scores, probabilities, q, k and v have");
  check(head >= 0 && head < heads, "inspect: --head ", head, ": ", value.name, " ", x.shape(),
        " has heads 0 to ", heads - 1);
  std::vector<int64_t> sizes;
  int64_t before = 1;  // blocks of heads
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) sizes.push_back(x.dim(i));
    if (i < axis) before *= x.dim(i);
  }
  const std::vector<double> all = x.values();
  const auto block = static_cast<std::ptrdiff_t>(x.elements() / (before * heads));
  std::vector<double> chosen;
  for (int64_t b = 0; b < before; ++b)
    std::copy_n(all.begin() + (b * heads + head) * block, block, std::back_inserter(chosen));
  return Tensor::from(chosen, Shape(sizes), x.dtype());
}

std::string tensor_csv(const Tensor& x) {
  const int64_t width = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  const std::vector<double> values = x.values();
  std::string text;
  for (int i = 0; i + 1 < x.rank(); ++i) text += fmt::format("i{},", i);
  for (int64_t j = 0; j < width; ++j) text += fmt::format("{}{}", j, j + 1 < width ? "," : "\n");
  const int64_t rows = width == 0 ? 0 : x.elements() / width;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t below = rows;  // rows under one index of the axis
    for (int i = 0; i + 1 < x.rank(); ++i) {
      below /= x.dim(i);
      text += fmt::format("{},", row / below % x.dim(i));
    }
    for (int64_t j = 0; j < width; ++j) {
      text += number_text(values[static_cast<size_t>(row * width + j)], x.dtype());
      text += j + 1 < width ? ',' : '\n';
    }
  }
  return text;
}

Json tensor_json(const Tensor& x) {
  Json numbers = Json::array();
  for (const double value : x.values()) numbers.push_back(number_json(value));
  return {{"shape", shape_json(x.shape())}, {"dtype", name(x.dtype())}, {"values", numbers}};
}

}  // namespace tessera
