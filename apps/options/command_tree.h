#pragma once

// The program's commands and options as text, and what is generated from them: completions of the shells and
// manual pages. They come from the same source as --help.

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

struct OptionText {
  std::vector<std::string> names;  // "--batch", "-h"; empty for an argument by position
  std::string value;               // what follows it: "N", "FILE"; empty for a flag
  std::string description;
};

struct CommandText {
  std::string path;  // "tessera bench train"
  std::string description, footer;
  std::vector<OptionText> options;
  std::vector<CommandText> inner;

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// The script by which a shell ("bash", "zsh" or "fish") completes commands, options, and the names of
// recipes, presets, data sets and keys. Fails for another shell.
std::string completion_of(const CommandText& program, const std::string& shell);

// The manual page of one command, in man(7)'s language.
std::string manual_page(const CommandText& command);
// Writes tessera.1, and tessera-NAME.1 for every command, into the folder, which is made. Returns their
// number.
int write_manual(const CommandText& program, const std::filesystem::path& folder);

// Version and commit, compiler, the libraries found when this was built, and the kernels that this processor
// uses.
std::string version_text();

}  // namespace tessera
