#include "models/parts/stages.h"

namespace tessera {

Json stage_options(const Json& options, size_t i, size_t stages, const std::string& path) {
  Json own = Json::object();
  for (const auto& [key, value] : options.items()) {
    check(!value.is_array() || value.size() == stages, path, ".", key, " has ", value.size(), " values for ",
          stages, " stages");
    own[key] = value.is_array() ? value[i] : value;
  }
  return own;
}

Json staged_attention_options(const Json& attention, size_t i, size_t stages) {
  Json own = stage_options(attention, i, stages, "attention");
  if (own.contains("decay") && own["decay"].is_object())
    own["decay"] = stage_options(own["decay"], i, stages, "attention.decay");
  return own;
}

std::vector<AttentionOptions> read_staged_attention(Fields& fields, const std::vector<int64_t>& dims) {
  const Json* attention = fields.find("attention");
  if (!attention || !attention->is_object()) fields.object("attention");  // fails with its own message
  std::vector<AttentionOptions> stages;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Json own = staged_attention_options(*attention, i, dims.size());
    stages.push_back(read_attention(Fields(own, fields.where(), "attention"), dims[i]));
  }
  return stages;
}

}  // namespace tessera
