#pragma once

// Commands and their options, and the program that runs the one which was given. CLI11 parses the arguments;
// it takes seconds to compile, so command.cpp and program.cpp alone include it. The functions here have
// CLI11's names.
//
//   void add_models(Command& app) {
//     Command& command = add_command(app, "models", "List the presets.", {"tessera models --json"});
//     auto options = std::make_shared<Options>();
//     add_json(command, options->json);
//     on_run(command, [options] { return list_models(*options); });
//   }

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera {

// How the program ends; bad usage is whatever tessera::Error reports too: an option, a file, a name.
enum class ExitCode : int { done = 0, check_failed = 1, bad_usage = 2 };

// Returns why a value is refused, or nothing where it is good.
using Validator = std::function<std::string(const std::string& value)>;

// The types of which an option may be.
template <typename T>
concept OptionValue = std::same_as<T, std::string> || std::same_as<T, std::vector<std::string>> ||
    std::same_as<T, int> || std::same_as<T, int64_t> || std::same_as<T, uint64_t> ||
    std::same_as<T, double> || std::same_as<T, std::optional<int64_t>> ||
    std::same_as<T, std::optional<double>> || std::same_as<T, std::vector<float>>;

// One option of a command. It lives as long as its command; what changes it returns it, so that calls chain.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}

  Option* required();
  Option* type_name(const std::string& name);  // what its --help shows: "N", "DIR"
  Option* check(const Validator& validator);
  Option* capture_default_str();      // --help shows the value that the variable has now
  Option* delimiter(char separator);  // between the values of a list that is one argument
  Option* expected(int values);       // how many follow the option's name
  Option* expected(int least, int most);
  Option* allow_extra_args(bool allowed);  // false: a list takes one value each time that it is given
  Option* needs(Option* other);
  Option* excludes(Option* other);

  int64_t count() const;  // how often it was given
  std::string get_name() const;

 private:
  CLI::Option& option_;
};

// The program or one of its subcommands. A subcommand belongs to the command that it was added to.
class Command {
 public:
  Command(const std::string& description, const std::string& name);  // the program
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command& add_subcommand(const std::string& name, const std::string& description);
  // Options keep a reference to `value`, which must live until the program has run. Names as CLI11 has them:
  // "--batch" for an option, "image" for an argument by position, "!--no-graph" for a flag that clears.
  template <OptionValue T>
  Option* add_option(const std::string& name, T& value, const std::string& description);
  // The same, but the value goes to `take`, which may refuse it by an error.
  Option* add_option(const std::string& name, const std::function<void(const std::string& value)>& take,
                     const std::string& description);
  Option* add_option(const std::string& name, const std::function<void(int value)>& take,
                     const std::string& description);
  Option* add_flag(const std::string& name, bool& value, const std::string& description);

  Option* get_option(const std::string& name);  // fails for one that it does not have
  bool given(const std::string& name) const;    // not where it has no such option
  void add_to_footer(const std::string& text);  // at the end of --help
  void require_subcommand();                    // exactly one must be given

 private:
  friend Command& add_command(Command&, const std::string&, const std::string&,
                              const std::vector<std::string>&, const std::string&);
  friend void on_run(Command&, std::function<ExitCode()>);
  friend int run_program(Command&, int, char**);
  explicit Command(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
  Option* keep(CLI::Option& option) { return &options_.emplace_back(option); }

  std::shared_ptr<CLI::App> app_;
  std::deque<Option> options_;
  std::vector<std::unique_ptr<Command>> subcommands_;
};

// A subcommand with its --help: a sentence, which the program's own help shows too, the options, what more
// there is to know, and examples.
Command& add_command(Command& app, const std::string& name, const std::string& description,
                     const std::vector<std::string>& examples, const std::string& more = "");

// Sets what the program does when `command` is the one that was given.
void on_run(Command& command, std::function<ExitCode()> run);

// Parses the arguments and runs the subcommand that they name. Every error goes to stderr as
// "tessera: message", with the nearest known name where an unknown one was given. Returns the exit code.
int run_program(Command& app, int argc, char** argv);

}  // namespace tessera
