#pragma once

// What all subcommands share: how they are declared, how they end, and the options that mean the same
// everywhere.
//
//   void add_models(CLI::App& app) {
//     CLI::App& command = add_command(app, "models", "List the presets.", {"tessera models --json"});
//     auto options = std::make_shared<Options>();
//     add_json(command, options->json);
//     on_run(command, [options] { return list_models(*options); });
//   }

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/training/precision.h"
#include "engine/core/device.h"
#include "engine/core/dtype.h"

namespace tessera {

// How the program ends; bad usage is whatever tessera::Error reports too: an option, a file, a name.
enum class ExitCode : int { done = 0, check_failed = 1, bad_usage = 2 };

// A subcommand with its --help: a sentence, which the program's own help shows too, the options, what more
// there is to know, and examples.
CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::vector<std::string>& examples, const std::string& more = "");

// For CLI::Option::check(): a number above 0, a number of at least 0.
CLI::Validator positive();
CLI::Validator non_negative();

// What the program does when `command` is the one that was given.
void on_run(CLI::App& command, std::function<ExitCode()> run);

// --threads N: takes effect at once; 0 is all cores, which is the default too.
void add_threads(CLI::App& command);
// --device cpu|cuda: fails where this build or this machine does not have it.
void add_device(CLI::App& command, Device& device);
// --dtype: one of `allowed`.
void add_dtype(CLI::App& command, DType& dtype, const std::vector<DType>& allowed);
// --precision f32|tf32|bf16. Fails for any other.
void add_precision(CLI::App& command, Precision& precision);
// --seed N.
CLI::Option* add_seed(CLI::App& command, uint64_t& seed);
// --json: the table as JSON on stdout.
void add_json(CLI::App& command, bool& json);

// Parses the arguments and runs the subcommand they name. Whatever goes wrong is said on stderr as
// "tessera: message", with the nearest known name where an unknown one was given. Returns the exit code.
int run_program(CLI::App& app, int argc, char** argv);

}  // namespace tessera
