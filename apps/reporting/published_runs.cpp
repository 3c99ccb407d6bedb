#include "apps/reporting/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#include "apps/reporting/published_table.h"
#include "apps/reporting/run_keys.h"
#include "apps/reporting/run_record.h"
#include "apps/training/config.h"
#include "data/registry.h"

namespace tessera {

namespace {

constexpr int64_t most_named = 8;  // runs on the line of those left out; --json has all

// Why the run's data are not what the paper trains and tests on; empty where they are. Here a part of the
// pictures, CIFAR-100's coarse classes and another size are another task.
std::string other_data(const DataConfig& data) {
  if (std::ranges::find(published_datasets(), data.name) == published_datasets().end())
    return "on " + data.name;
  for (const auto& [images, what] :
       {std::pair(data.train_images, "training"), std::pair(data.validation_images, "validation")})
    if (images > 0) return fmt::format("{} {} images", images, what);
  if (data.coarse_labels) return "coarse classes";
  const int64_t own = unopened_dataset(data.name, {}).image_shape[1];
  return data.image_size == 0 || data.image_size == own ? ""
                                                        : fmt::format("{} pixels a side", data.image_size);
}

// The first key in which the model is not the row's: "model.depth is 2, the row has 9". Empty if there is
// none.
std::string other_model(const Json& model, const Json& wanted) {
  std::array<ConfigKeys, 2> keys;
  flatten(model, "model", keys[0]);
  flatten(wanted, "model", keys[1]);
  for (const std::string& key : differing_keys(keys)) {
    const std::string *const has = find(keys[0], key), *const row = find(keys[1], key);
    return fmt::format("{} is {}, the row has {}", key, has ? *has : "not given", row ? *row : "none");
  }
  return "";
}

// Finds the run's row; sets "preset" or "left_out".
void place(Json& row, const Json& config) {
  const DataConfig data = read_data_config(Fields(config.at("data"), "data"));
  std::string reason = other_data(data);
  const Json& model = config.at("model");
  if (reason.empty()) {
    reason = "no row has this model";
    const Dataset whole = unopened_dataset(data.name, {});
    for (const PublishedRow& paper : published_rows()) {
      const std::string difference = other_model(model, resolve_model(paper.model_of_row, whole));
      if (difference.empty()) {
        row["preset"] = paper.model;
        return;
      }
      if (paper.model == config.value("preset", "")) reason = difference;
    }
  }
  row["left_out"] = reason;
}

}  // namespace

Json runs_for_table(const RunList& list) {
  Json rows = list.rows;
  for (Json& row : rows) {
    row["preset"] = nullptr;
    try {
      place(row, read_run(row["path"].get<std::string>()).config);
      if (!row["preset"].is_null() && !row["best"].is_number()) row["left_out"] = "no evaluation yet";
    } catch (const std::exception& error) {  // a config that is not whole
      row["left_out"] = error.what();
    }
  }
  return rows;
}

std::string left_out_line(const Json& runs) {
  int64_t count = 0;
  std::string names;
  for (const Json& run : runs)
    if (run.contains("left_out") && ++count <= most_named)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", run["run"].get<std::string>(),
                           run["left_out"].get<std::string>());
  if (count == 0) return "";
  if (count > most_named) names += fmt::format(", and {} more, which --json names", count - most_named);
  return fmt::format("{} in no row: {}", count == 1 ? "1 run is" : fmt::format("{} runs are", count), names);
}

}  // namespace tessera
