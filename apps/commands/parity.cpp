#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "engine/core/error.h"
#include "models/check/fixture.h"

namespace tessera {

namespace {

struct Options {
  std::vector<std::string> files;
  DType dtype = DType::f32;
  Device device = Device::cpu;
  double tolerance = 0;  // 0: the type's own
  bool json = false;
};

constexpr Column columns[] = {
    {"file", "file"},
    {"compared", "tensors", as_integer},
    {"error", "largest error", as_error},
    {"tensor", "in"},
    {"verdict", "verdict"},
};

// Compares one file. If the file cannot be compared, the row's "message" says why.
Json compare(const std::string& file, const Options& options, double tolerance) {
  Json row{{"file", file}};
  try {
    const Parity parity = check_fixture(file, options.dtype, options.device);
    const bool agrees = parity.error <= tolerance;  // false for NaN
    row.update({{"compared", parity.compared},
                {"error", parity.error},
                {"tensor", parity.tensor},
                {"tolerance", tolerance},
                {"verdict", agrees ? "ok" : "past the tolerance"}});
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool names_file = what.find(file) != std::string::npos;
    row.update({{"verdict", "not compared"}, {"message", names_file ? what : file + ": " + what}});
  }
  return row;
}

ExitCode run_parity(const Options& options) {
  const double tolerance = options.tolerance > 0 ? options.tolerance : parity_tolerance(options.dtype);
  Json rows = Json::array();
  ExitCode code = ExitCode::done;
  for (const std::string& file : options.files) {
    const Json& row = rows.emplace_back(compare(file, options, tolerance));
    if (row.contains("message")) {
      fmt::print(stderr, "tessera: {}\n", row["message"].get<std::string>());
      code = ExitCode::bad_usage;
    } else if (row["verdict"] != "ok" && code == ExitCode::done) {
      code = ExitCode::check_failed;
    }
  }
  print_rows(columns, rows, options.json);
  return code;
}

}  // namespace

void add_parity(Command& app) {
  Command& command = add_command(
      app, "parity", "Compare the engine with files of reference values.",
      {"tessera parity tests/fixtures/sl-vit.safetensors",
       "tessera parity tests/fixtures/*.safetensors --dtype f64 --tolerance 1e-8"},
      "Rebuilds the model or part of each fixture, runs it forward and backward, and compares every\n"
      "output, loss and gradient: max |a - b| <= tolerance * max |b|. Exit code 1 past the tolerance,\n"
      "2 for a file that cannot be read or a model that is not known.");
  const auto options = std::make_shared<Options>();
  command.add_option("files", options->files, "Fixtures")->required()->type_name("FILE");
  add_dtype(command, options->dtype, {DType::f32, DType::f64});
  command.add_option("--tolerance", options->tolerance, "Default: 1e-4 in f32, 1e-6 in f64")
      ->check(positive())
      ->type_name("T");
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run_parity(*options); });
}

}  // namespace tessera
