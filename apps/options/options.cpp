#include "apps/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

void add_threads(Command& command) {
  command.add_option("--threads", set_threads, "Compute with at most this many threads; 0: all cores")
      ->check(non_negative())
      ->type_name("N");
}

void add_device(Command& command, Device& device) {
  const auto choose = [&device](const std::string& text) {
    device = parse_device(text);
    require(device);
  };
  command.add_option("--device", choose, "Where to compute: cpu or cuda")->type_name("NAME");
}

void add_dtype(Command& command, DType& dtype, const std::vector<DType>& allowed) {
  std::vector<std::string> names;
  for (const DType each : allowed) names.emplace_back(name(each));
  const std::string choices = fmt::format("{}", fmt::join(names, ", "));
  const auto choose = [&dtype, names, choices](const std::string& text) {
    check(std::find(names.begin(), names.end(), text) != names.end(), "--dtype '", text, "' is not one of ",
          choices, did_you_mean(text, names));
    dtype = parse_dtype(text);
  };
  command.add_option("--dtype", choose, "Type of the numbers: " + choices)->type_name("NAME");
}

void add_precision(Command& command, Precision& precision) {
  command
      .add_option(
          "--precision", [&precision](const std::string& text) { precision = precision_of(text); },
          "What it computes in: f32, tf32 (a GPU's products) or bf16; weights are f32")
      ->type_name("NAME");
}

Option* add_seed(Command& command, uint64_t& seed) {
  return command.add_option("--seed", seed, "Of every random draw; the same seed gives the same bits")
      ->capture_default_str()
      ->type_name("N");
}

void add_json(Command& command, bool& json) {
  command.add_flag("--json", json, "Print JSON instead of a table");
}

}  // namespace tessera
