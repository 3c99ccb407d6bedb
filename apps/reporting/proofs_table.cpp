#include "apps/reporting/proofs_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/reporting/table.h"

namespace tessera {

namespace {

std::string as_gradient(const Json& value) { return fmt::format("{:.9g}", value.get<double>()); }
std::string as_verdict(const Json& ok) { return ok.get<bool>() ? "yes" : "NO"; }

constexpr Column columns[] = {
    {"name", "gradient of"},
    {"cell", "cell", as_shape},
    {"analytic", "analytic", as_gradient},
    {"difference", "difference", as_gradient},
    {"error", "error", as_error},
    {"step", "step", as_error},
    {"ok", "agree", as_verdict},
};

Json indices_of(int64_t cell, const Shape& shape) {
  Json indices = Json::array();
  for (int64_t i = shape.rank() - 1, below = 1; i >= 0; below *= shape[static_cast<int>(i)], --i)
    indices.insert(indices.begin(), cell / below % shape[static_cast<int>(i)]);
  return indices;
}

}  // namespace

void print_proofs(const PassRecord& record, const Json& proofs) {
  Json rows = Json::array();
  for (size_t place = 0; place < record.values().size(); ++place) {
    const auto found = proofs.find(std::to_string(place));
    if (found == proofs.end()) continue;
    const PassRecord::Value& value = record.values()[place];
    for (Json row : *found) {
      row["name"] = value.name;
      row["cell"] = indices_of(row["cell"].get<int64_t>(), value.value.shape());
      rows.push_back(row);
    }
  }
  print_table(columns, rows);
}

std::string summary_of_proofs(const PassRecord& record, const Json& proofs) {
  int64_t all = 0, wrong = 0;
  std::string first;
  for (const auto& [place, cells] : proofs.items())
    for (const Json& proof : cells) {
      ++all;
      if (proof["ok"].get<bool>()) continue;
      if (wrong++ == 0)
        first =
            fmt::format("{} cell {}", record.values()[std::stoul(place)].name, proof["cell"].get<int64_t>());
    }
  if (wrong == 0) return fmt::format("{} proofs, all right", all);
  return fmt::format("{} proofs, {} WRONG, the first that of {}", all, wrong, first);
}

}  // namespace tessera
