#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/catalog.h"
#include "models/check/model_check.h"

namespace tessera {

namespace {

struct Options {
  std::vector<std::string> ops;
  ModelSource model{"", 16, 4};
  int64_t blocks = 2;
  ModelCheckOptions check;
  Device device = Device::cpu;
  bool json = false;
};

constexpr Column model_columns[] = {{"parameter", "parameter"},
                                    {"elements", "elements", as_integer},
                                    {"error", "error", as_error},
                                    {"verdict", ""}};

// The catalog's entries with these names; the whole catalog if no name is given.
std::vector<const Op*> select(const std::vector<std::string>& names) {
  std::vector<const Op*> ops;
  std::vector<std::string> known;
  for (const Op& op : catalog) {
    known.emplace_back(op.name);
    if (names.empty() || std::find(names.begin(), names.end(), op.name) != names.end()) ops.push_back(&op);
  }
  for (const std::string& name : names)
    check(std::find(known.begin(), known.end(), name) != known.end(), "gradcheck: no op '", name,
          "' in the catalog", did_you_mean(name, known));
  return ops;
}

// Checks every case of `op`; its error and verdict are the worst of them.
Json check_op(const Op& op, const OpCases& all, Device device) {
  Json row{{"op", op.name}, {"forward", op.forward}, {"backward", op.backward}, {"error", nullptr}};
  Json cases = Json::array();
  bool ok = true;
  for (const OpCase& each : all) {
    if (each.op != op.name) continue;
    const double error = gradient_error(each, device);
    if (row["error"].is_null() || !(error <= row["error"].get<double>())) row["error"] = error;
    ok = ok && error <= each.tolerance;
    cases.push_back({{"variant", each.variant}, {"error", error}, {"tolerance", each.tolerance}});
  }
  row["verdict"] = cases.empty() ? "no case" : ok ? "ok" : "wrong";
  row["cases"] = std::move(cases);
  return row;
}

void print_op(const Json& row) {
  const auto text = [&](const char* key) { return row[key].get<std::string>(); };
  const std::string error = row["error"].is_null() ? "-" : as_error(row["error"]);
  fmt::print("{:<16} {:>8}  {}, {} case{}\n", text("op"), error, text("verdict"), row["cases"].size(),
             row["cases"].size() == 1 ? "" : "s");
  fmt::print("    {}\n    {}\n", text("forward"), text("backward"));
  std::fflush(stdout);
}

ExitCode check_ops(const Options& options) {
  const std::vector<const Op*> ops = select(options.ops);
  const OpCases cases = all_cases();
  Json rows = Json::array();
  int64_t wrong = 0;
  for (const Op* op : ops) {
    const Json& row = rows.emplace_back(check_op(*op, cases, options.device));
    wrong += row["verdict"] != "ok";
    if (!options.json) print_op(row);
  }
  if (options.json)
    print_json(rows);
  else
    fmt::print("\n{} ops against central differences in double, {} not right.\n", rows.size(), wrong);
  return wrong == 0 ? ExitCode::done : ExitCode::check_failed;
}

// The config with at most `blocks` blocks in each stage; 0 leaves it unchanged. A ResNet's depth counts
// layers, 6 n + 2.
Json shallow(Json config, int64_t blocks) {
  if (blocks == 0 || !config.contains("depth")) return config;
  const bool has_prior_layers = config.value("sp_layers", 0) > 0;  // a block at least must follow them
  if (has_prior_layers) blocks = std::max<int64_t>(blocks, 2);
  const auto at_most = [](Json& number, int64_t most) { number = std::min(number.get<int64_t>(), most); };
  Json& depth = config["depth"];
  if (depth.is_array())
    for (Json& stage : depth) at_most(stage, blocks);
  else
    at_most(depth, config.value("arch", "") == "resnet" ? 6 * blocks + 2 : blocks);
  if (has_prior_layers) at_most(config["sp_layers"], depth.get<int64_t>() - 1);
  return config;
}

ExitCode check_whole_model(const Options& options) {
  const Json config = shallow(options.model.config(), options.blocks);
  Json rows = Json::array();
  int64_t wrong = 0;
  for (const ParameterError& each : check_model(config, options.check, options.device)) {
    const bool ok = each.error <= model_check_tolerance;
    rows.push_back({{"parameter", each.name},
                    {"elements", each.elements},
                    {"error", each.error},
                    {"verdict", ok ? "ok" : "wrong"}});
    wrong += !ok;
  }
  print_rows(model_columns, rows, options.json);
  if (!options.json)
    fmt::print("\n{} parameters against central differences in double, {} not right.\n", rows.size(), wrong);
  return wrong == 0 ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace

void add_gradcheck(Command& app) {
  Command& command =
      add_command(app, "gradcheck", "Check the gradient of every operation, or of a whole model.",
                  {"tessera gradcheck", "tessera gradcheck softmax attention",
                   "tessera gradcheck --model sl-vit --entries 4"},
                  "Prints each op of the catalog with the formulas of its output and gradients, and how\n"
                  "far they are from central differences in double. With --model: every parameter, in\n"
                  "single entries drawn at random and along one direction that moves all of them.\n"
                  "With --device: the gradients are those of that device; the differences are the CPU's.\n"
                  "Exit code 1 if one is not right.");
  const auto options = std::make_shared<Options>();
  Option* ops = command.add_option("ops", options->ops, "Only these ops")->type_name("OP");
  Option* model = options->model.add_to(command, "--model")->excludes(ops);
  const auto count = [&](const char* name, int64_t& value, const char* what) {
    command.add_option(name, value, what)->check(non_negative())->capture_default_str()->type_name("N");
  };
  count("--blocks", options->blocks, "Of a model: check it with at most so many a stage; 0: all");
  count("--entries", options->check.entries, "Of a model: single entries of each parameter to check");
  add_seed(command, options->check.seed);
  for (const char* name : {"--image-size", "--classes", "--blocks", "--entries", "--seed"})
    command.get_option(name)->needs(model);
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command,
         [options, model] { return model->count() > 0 ? check_whole_model(*options) : check_ops(*options); });
}

}  // namespace tessera
