#include "apps/reporting/evaluation_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/reporting/table.h"
#include "apps/training/csv.h"

namespace tessera {

std::string class_csv(const Json& rows) {
  std::vector<std::string> header;
  for (const auto& [key, value] : rows.front().items()) header.push_back(key);
  std::string text = csv_line(header);
  for (const Json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& key : header) fields.push_back(row[key].is_null() ? "" : as_text(row[key]));
    text += csv_line(fields);
  }
  return text;
}

std::string judgement_csv(const std::vector<Judgement>& judgements, const Split& split, Task task,
                          const std::vector<std::string>& names) {
  const auto name = [&](int64_t k) { return names[static_cast<size_t>(k)]; };
  const bool segments = task == Task::segment;
  std::string text =
      segments ? "picture,source,right_pixels\n" : "picture,source,label,predicted,right,confidence,loss\n";
  for (const Judgement& j : judgements) {
    std::vector<std::string> fields{std::to_string(j.picture), split.source(j.picture)};
    if (!segments)
      for (const std::string& field : {name(j.label), name(j.predicted)}) fields.push_back(field);
    fields.push_back(fmt::format("{}", j.right));
    if (!segments)
      for (const double number : {j.confidence, j.loss}) fields.push_back(fmt::format("{}", number));
    text += csv_line(fields);
  }
  return text;
}

}  // namespace tessera
