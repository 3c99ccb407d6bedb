#include "apps/options/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

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

// CLI11 names a flag that clears "--no-graph{false}", which cannot be typed.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find("{false}"));
  }
};

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
  throw ExitCode::done;
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
           throw ExitCode::done;
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

// ---- Options ----

Option* Option::required() {
  option_.required();
  return this;
}
Option* Option::type_name(const std::string& name) {
  option_.type_name(name);
  return this;
}
Option* Option::check(const Validator& validator) {
  option_.check(CLI::Validator([validator](const std::string& value) { return validator(value); }, ""));
  return this;
}
Option* Option::capture_default_str() {
  option_.capture_default_str();
  return this;
}
Option* Option::delimiter(char separator) {
  option_.delimiter(separator);
  return this;
}
Option* Option::expected(int values) {
  option_.expected(values);
  return this;
}
Option* Option::expected(int least, int most) {
  option_.expected(least, most);
  return this;
}
Option* Option::allow_extra_args(bool allowed) {
  option_.allow_extra_args(allowed);
  return this;
}
Option* Option::needs(Option* other) {
  option_.needs(&other->option_);
  return this;
}
Option* Option::excludes(Option* other) {
  option_.excludes(&other->option_);
  return this;
}

int64_t Option::count() const { return static_cast<int64_t>(option_.count()); }
std::string Option::get_name() const { return option_.get_name(); }

// ---- Commands ----

Command::Command(const std::string& description, const std::string& name)
    : app_(std::make_shared<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpFormatter>());  // subcommands inherit it
}

Command& Command::add_subcommand(const std::string& name, const std::string& description) {
  CLI::App* const added = app_->add_subcommand(name, description);
  return *subcommands_.emplace_back(new Command(app_->get_subcommand_ptr(added)));
}

// CLI11 clamps integers that overflow, and takes "inf" and "nan": such numbers are refused.
template <class T> std::string number_complaint(const std::string& text) {
  T value{};
  const char* const first = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const last = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(first, last, value);
  if (read.ec == std::errc::result_out_of_range) return "is out of range";
  if constexpr (std::is_floating_point_v<T>)
    if (read.ec == std::errc() && !std::isfinite(value)) return "is not finite";
  return {};
}

template <OptionValue T>
Option* Command::add_option(const std::string& name, T& value, const std::string& description) {
  CLI::Option& option = *app_->add_option(name, value, description);
  if constexpr (std::is_arithmetic_v<T>)
    option.check(CLI::Validator(
        [](const std::string& text) {
          const std::string complaint = number_complaint<T>(text);
          return complaint.empty() ? complaint : "the number " + text.substr(0, 40) + " " + complaint;
        },
        ""));
  return keep(option);
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<float>&, const std::string&);

Option* Command::add_option(const std::string& name, std::function<void(const std::string&)> take,
                            const std::string& description) {
  return keep(*app_->add_option_function<std::string>(name, take, description));
}

Option* Command::add_option(const std::string& name, std::function<void(int)> take,
                            const std::string& description) {
  return keep(*app_->add_option_function<int>(name, take, description));
}

Option* Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return keep(*app_->add_flag(name, value, description));
}

Option* Command::get_option(const std::string& name) { return keep(*app_->get_option(name)); }

bool Command::given(const std::string& name) const {
  const CLI::Option* const option = app_->get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

void Command::add_to_footer(const std::string& text) { app_->footer(app_->get_footer() + text); }

void Command::require_subcommand() { app_->require_subcommand(1); }

Command& add_command(Command& app, const std::string& name, const std::string& description,
                     const std::vector<std::string>& examples, const std::string& more) {
  Command& command = app.add_subcommand(name, description);
  std::string footer = more.empty() ? "" : more + "\n\n";
  footer += examples.empty() ? "" : "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  command.app_->footer(footer);
  command.app_->get_formatter()->column_width(34);
  return command;
}

void on_run(Command& command, std::function<ExitCode()> run) {
  command.app_->callback([run = std::move(run)] {
    if (const ExitCode code = run(); code != ExitCode::done) throw ExitCode{code};
  });
}

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
