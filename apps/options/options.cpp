#include "apps/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

// The innermost subcommand that the arguments name.
const CLI::App& chosen(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : chosen(*given.front());
}

// "bench train"; empty for the program itself.
std::string command_path(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  const std::string outer = command_path(*command.get_parent());
  return outer.empty() ? command.get_name() : outer + " " + command.get_name();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* inner : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(inner->get_name());
  return names;
}

// What is wrong with the first argument that `command` does not know.
std::string unknown_argument(const CLI::App& command, const std::string& argument) {
  if (argument.starts_with("-")) {
    const std::string name = argument.substr(0, argument.find('='));
    return "unknown option " + name + did_you_mean(name, option_names(command));
  }
  const std::vector<std::string> inner = subcommand_names(command);
  if (inner.empty()) return "unexpected argument '" + argument + "'";
  return "unknown subcommand '" + argument + "'" + did_you_mean(argument, inner);
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  const std::vector<std::string> unknown = command.remaining();
  const std::string what =
      unknown.empty() ? std::string(error.what()) : unknown_argument(command, unknown.front());
  const std::string path = command_path(command);
  return (path.empty() ? what : path + ": " + what) + "; see tessera " + (path.empty() ? path : path + " ") +
         "--help";
}

int complain(const std::string& message) {
  fmt::print(stderr, "tessera: {}\n", message);
  return static_cast<int>(ExitCode::bad_usage);
}

void describe(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.footer(
      "tessera SUBCOMMAND --help tells more, with examples.\n"
      "Exit codes: 0 done, 1 a check failed, 2 bad usage or input.");
}

// Runs the chosen subcommand and returns the exit code.
int run_chosen(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return static_cast<int>(ExitCode::done);
  } catch (const ExitCode code) {
    return static_cast<int>(code);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    if (argc <= 1) {
      fmt::print(stderr, "{}", app.help());
      return static_cast<int>(ExitCode::bad_usage);
    }
    return complain(explain(app, error));
  } catch (const std::bad_alloc&) {
    return complain("out of memory");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::vector<std::string>& examples, const std::string& more) {
  CLI::App& command = *app.add_subcommand(name, description);
  std::string footer = more.empty() ? "" : more + "\n\n";
  footer += examples.empty() ? "" : "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  command.footer(footer);
  command.get_formatter()->column_width(34);
  return command;
}

namespace {

// A finite number that is `good`. CLI11's own ranges are told to their last digit, the 309th.
CLI::Validator number_that(bool (*good)(double), const std::string& what) {
  const auto reason = [=](const std::string& text) -> std::string {
    size_t used = 0;
    double number = std::nan("");
    try {
      number = std::stod(text, &used);
    } catch (const std::exception&) {  // no number, or none that a double holds
    }
    if (used == text.size() && std::isfinite(number) && good(number)) return "";
    return text + " is not " + what;
  };
  return {reason, ""};
}

}  // namespace

CLI::Validator positive() {
  return number_that([](double x) { return x > 0; }, "a number above 0");
}

CLI::Validator non_negative() {
  return number_that([](double x) { return x >= 0; }, "a number of 0 or more");
}

void on_run(CLI::App& command, std::function<ExitCode()> run) {
  command.callback([run = std::move(run)] {
    if (const ExitCode code = run(); code != ExitCode::done) throw ExitCode{code};
  });
}

void add_threads(CLI::App& command) {
  command
      .add_option_function<int>("--threads", set_threads,
                                "Compute with at most this many threads; 0: all cores")
      ->check(non_negative())
      ->type_name("N");
}

void add_device(CLI::App& command, Device& device) {
  const auto choose = [&device](const std::string& text) {
    device = parse_device(text);
    require(device);
  };
  command.add_option_function<std::string>("--device", choose, "Where to compute: cpu or cuda")
      ->type_name("NAME");
}

void add_dtype(CLI::App& command, DType& dtype, const std::vector<DType>& allowed) {
  std::vector<std::string> names;
  for (const DType each : allowed) names.emplace_back(name(each));
  const std::string choices = fmt::format("{}", fmt::join(names, ", "));
  const auto choose = [&dtype, names, choices](const std::string& text) {
    check(std::find(names.begin(), names.end(), text) != names.end(), "--dtype '", text, "' is not one of ",
          choices, did_you_mean(text, names));
    dtype = parse_dtype(text);
  };
  command.add_option_function<std::string>("--dtype", choose, "Type of the numbers: " + choices)
      ->type_name("NAME");
}

void add_precision(CLI::App& command, Precision& precision) {
  command
      .add_option_function<std::string>(
          "--precision", [&precision](const std::string& text) { precision = precision_of(text); },
          "What it computes in: f32, tf32 (a GPU's products) or bf16; weights are f32")
      ->type_name("NAME");
}

CLI::Option* add_seed(CLI::App& command, uint64_t& seed) {
  return command.add_option("--seed", seed, "Of every random draw; the same seed gives the same bits")
      ->capture_default_str()
      ->type_name("N");
}

void add_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON instead of a table");
}

int run_program(CLI::App& app, int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches the allowed size is an error like a full disk
  describe(app);
  const int code = run_chosen(app, argc, argv);
  // A full disk shows here at the latest; what was printed must not be lost without a word.
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? code
                                                              : complain("standard output cannot be written");
}

}  // namespace tessera
