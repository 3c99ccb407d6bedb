// The program as a whole: its arguments, its help, its end.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>

#include "apps/options/command.h"
#include "apps/options/command_tree.h"
#include "apps/options/complaint.h"
#include "engine/core/error.h"

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

// The complaint about the first argument that `command` does not know.
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
      unknown.empty() ? without_library_words(error.what()) : unknown_argument(command, unknown.front());
  const std::string path = command_path(command);
  return (path.empty() ? what : path + ": " + what) + "; see tessera " + (path.empty() ? path : path + " ") +
         "--help";
}

// Opens /dev/null in the place of standard streams that are closed, so that no file of a run gets their
// numbers, and with them what is printed.
void open_closed_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      if (open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY) < 0) return;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text{{}, option.get_type_name(), option.get_description()};
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) text.value.clear();  // a flag
  if (option.get_positional()) text.value = option.get_name();
  return text;
}

CommandText text_of(const CLI::App& app) {
  const std::string path = command_path(app);
  CommandText text{
      path.empty() ? "tessera" : "tessera " + path, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) text.options.push_back(text_of(*option));
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; }))
    text.inner.push_back(text_of(*inner));
  return text;
}

void print_completion(const CLI::App& app, const std::string& shell) {
  const std::string script = completion_of(text_of(app), shell);
  std::fwrite(script.data(), 1, script.size(), stdout);
  throw ExitCode{ExitCode::done};
}

void describe(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", version_text);
  app.add_option_function<std::string>(
         "--completion", [&app](const std::string& shell) { print_completion(app, shell); },
         "Print the script by which a shell completes commands: bash, zsh or fish")
      ->type_name("SHELL")
      ->trigger_on_parse();
  app.add_option_function<std::string>(
         "--manual",
         [&app](const std::string& folder) {
           write_manual(text_of(app), folder);
           throw ExitCode{ExitCode::done};
         },
         "Write the manual pages, one a command, into a folder")
      ->type_name("DIR")
      ->trigger_on_parse();
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
      say_to_stderr(app.help());
      return static_cast<int>(ExitCode::bad_usage);
    }
    return complain(explain(app, error));
  } catch (const std::bad_alloc&) {
    return complain("out of memory; a smaller batch, image or model takes less");
  } catch (const std::filesystem::filesystem_error& error) {
    return complain(explanation_of(error));
  } catch (const std::length_error&) {
    return complain("out of memory: a list is wanted that no memory can hold");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace

int run_program(Command& program, int argc, char** argv) {
  open_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches the allowed size is an error like a full disk
  CLI::App& app = *program.app_;
  describe(app);
  std::vector<char*> words(argv, argv + argc);
  std::string help = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // tessera help train
    words.erase(words.begin() + 1);
    words.push_back(help.data());
    argv = words.data();
  }
  const int code = run_chosen(app, argc, argv);
  // A full disk shows here at the latest; what was printed must not be lost without a word.
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return printed || code != 0 ? code : complain("standard output cannot be written");
}

}  // namespace tessera
