// tessera keys: every key of a config, from the code that reads it.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "apps/training/config_keys.h"
#include "engine/core/error.h"
#include "models/architectures.h"

namespace tessera {

namespace {

struct Options {
  std::string prefix;
  bool markdown = false, json = false;
};

bool is_below(const std::string& path, const std::string& prefix) {
  return prefix.empty() || path == prefix || path.starts_with(prefix + ".") || path.starts_with(prefix + "[");
}

std::vector<ConfigKey> keys_below(const std::string& prefix) {
  std::vector<ConfigKey> keys;
  std::vector<std::string> known;
  for (ConfigKey& key : config_keys()) {
    known.push_back(key.path);
    if (is_below(key.path, prefix)) keys.push_back(std::move(key));
  }
  check(!keys.empty(), "keys: no key of a config is '", prefix, "'", did_you_mean(prefix, known));
  return keys;
}

Json as_json(const std::vector<ConfigKey>& keys) {
  Json rows = Json::array();
  for (const ConfigKey& key : keys) {
    Json row{{"key", key.path}, {"values", key.values}};
    row["default"] = key.fallback.empty() ? Json() : Json(key.fallback);
    row["meaning"] = key.meaning;
    if (!key.architectures.empty()) row["architectures"] = key.architectures;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Those that know a key: "pit, swin", "all", or "all but resnet" where that is shorter.
std::string architectures_of(const ConfigKey& key) {
  std::string with, without;
  size_t missing = 0;
  for (const Architecture& row : architectures()) {
    const bool knows = std::ranges::find(key.architectures, row.name) != key.architectures.end();
    std::string& names = knows ? with : without;
    names += (names.empty() ? "" : ", ") + row.name;
    missing += !knows;
  }
  return missing == 0 ? "all" : missing < key.architectures.size() ? "all but " + without : with;
}

void print_for_people(const std::vector<ConfigKey>& keys) {
  for (const ConfigKey& key : keys) {
    fmt::print("{}  {}", key.path, key.values);
    if (!key.fallback.empty()) fmt::print(", default {}", key.fallback);
    fmt::print("\n    {}\n", key.meaning);
    if (!key.architectures.empty()) fmt::print("    in {}\n", architectures_of(key));
  }
}

// Escapes text for a cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

// "optimizer" of "optimizer.lr", "model" of "model.dim", "model.attention" of "model.attention.heads".
std::string object_of(const std::string& path) {
  const size_t end = path.find_first_of(".[", path.starts_with("model.") ? 6 : 0);
  return end != std::string::npos ? path.substr(0, end) : path.starts_with("model.") ? "model" : "";
}

void print_rows_of(const std::vector<ConfigKey>& keys, const std::string& object) {
  const bool model = object.starts_with("model");
  fmt::print("\n## {}\n\n| key | values | default | meaning |{}\n|---|---|---|---|{}\n",
             object.empty() ? "The run" : "`" + object + "`", model ? " in |" : "", model ? "---|" : "");
  for (const ConfigKey& key : keys)
    if (object_of(key.path) == object)
      fmt::print("| `{}` | {} | {} | {} |{}\n", key.path, cell(key.values),
                 key.fallback.empty() ? "" : "`" + cell(key.fallback) + "`", cell(key.meaning),
                 model ? " " + architectures_of(key) + " |" : "");
}

// A table for each object, in the order of the keys.
void print_markdown(const std::vector<ConfigKey>& keys) {
  std::vector<std::string> objects;
  for (const ConfigKey& key : keys)
    if (std::ranges::find(objects, object_of(key.path)) == objects.end())
      objects.push_back(object_of(key.path));
  for (const std::string& object : objects) print_rows_of(keys, object);
}

ExitCode run(const Options& options) {
  const std::vector<ConfigKey> keys = keys_below(options.prefix);
  if (options.json)
    print_json(as_json(keys));
  else if (options.markdown)
    print_markdown(keys);
  else
    print_for_people(keys);
  return ExitCode::done;
}

}  // namespace

void add_keys(Command& app) {
  Command& command =
      add_command(app, "keys", "Every key of a config with its values, default and meaning.",
                  {"tessera keys optimizer", "tessera keys model.attention", "tessera keys --json"},
                  "`tessera train --set KEY=VALUE` changes any of them.");
  const auto options = std::make_shared<Options>();
  command.add_option("prefix", options->prefix, "Only this key and those below it")->type_name("KEY");
  Option* markdown =
      command.add_flag("--markdown", options->markdown, "Print Markdown tables, one for each object");
  add_json(command, options->json);
  markdown->excludes(command.get_option("--json"));
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
