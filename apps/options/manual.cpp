#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "apps/options/command_tree.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

// Text as man(7) takes it: backslashes and hyphens escaped, no line that begins like a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string dashed(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string option_entry(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  const std::string value =
      option.value.empty() ? "" : (names.empty() ? "\\fI" : " \\fI") + roff(option.value) + "\\fR";
  return fmt::format(".TP\n{}{}\n{}\n", names, value, roff(option.description));
}

}  // namespace

std::string manual_page(const CommandText& command) {
  std::string page = fmt::format(".TH {} 1 \"\" \"tessera {}\" \"User Commands\"\n",
                                 upper(dashed(command.path)), TESSERA_VERSION);
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(dashed(command.path)), roff(command.description));
  page += fmt::format(".SH SYNOPSIS\n.B {}\n{}[\\fIOPTIONS\\fR]", roff(command.path),
                      command.inner.empty() ? "" : "\\fISUBCOMMAND\\fR ");
  for (const OptionText& option : command.options)
    if (option.names.empty()) page += " \\fI" + roff(option.value) + "\\fR";
  page += "\n";
  if (!command.inner.empty()) {
    page += ".SH SUBCOMMANDS\n";
    for (const CommandText& inner : command.inner)
      page += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(dashed(inner.path)), roff(inner.description));
  }
  page += ".SH OPTIONS\n";
  for (const OptionText& option : command.options) page += option_entry(option);
  if (!command.footer.empty()) page += ".SH NOTES\n.nf\n" + roff(command.footer) + "\n.fi\n";
  page += ".SH EXIT STATUS\n0 done, 1 a check failed, 2 bad usage or input.\n";
  if (command.path != "tessera") page += ".SH SEE ALSO\n.BR tessera (1)\n";
  return page;
}

int write_manual(const CommandText& program, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, folder.string(), ": the folder cannot be made: ", error.message());
  write_file_atomically(folder / (dashed(program.path) + ".1"), manual_page(program));
  int count = 1;
  for (const CommandText& inner : program.inner) count += write_manual(inner, folder);
  return count;
}

}  // namespace tessera
