#include "apps/options/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

namespace tessera {

namespace {

// CLI11 names a flag that clears "--no-graph{false}", which cannot be typed.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find("{false}"));
  }
};

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

}  // namespace

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

Command::Command(const std::string& description, const std::string& name)
    : app_(std::make_shared<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpFormatter>());  // subcommands inherit it
}

Command& Command::add_subcommand(const std::string& name, const std::string& description) {
  CLI::App* const added = app_->add_subcommand(name, description);
  return *subcommands_.emplace_back(new Command(app_->get_subcommand_ptr(added)));
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

Option* Command::add_option(const std::string& name, const std::function<void(const std::string&)>& take,
                            const std::string& description) {
  return keep(*app_->add_option_function<std::string>(name, take, description));
}

Option* Command::add_option(const std::string& name, const std::function<void(int)>& take,
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

}  // namespace tessera
