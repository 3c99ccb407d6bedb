#pragma once

// What the program says where a command cannot be understood, or fails.

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

// CLI11 says "Could not convert: --epochs = three": the same in other words; any other message as it is.
std::string without_library_words(const std::string& message);

// The library's own message says "filesystem error: status" before what helps.
std::string explanation_of(const std::filesystem::filesystem_error& error);

// Writes to stderr as far as that goes: where it is full or closed nothing else can be said.
void say_to_stderr(std::string_view text);

// Says "tessera: MESSAGE" on stderr and returns the exit code of bad usage. Lines after the first are
// indented, so that no name with a line end in it passes for a message.
int complain(const std::string& message);

// From here on complain() leaves two seconds to the first of several processes of one command line, which has
// the same to say and ends all.
void let_others_complain_first();

}  // namespace tessera
