#include "apps/options/complaint.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "apps/options/command.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

bool others_first = false;

// Words that no terminal shows in one look, as a number of 300 digits or a name that no file can have, cut
// short.
std::string with_short_words(const std::string& message) {
  constexpr size_t longest = 260, kept = 120;
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const size_t end = std::min(message.find_first_of(" \n", at), message.size() - 1) + 1;
    text += end - at > longest ? message.substr(at, kept) + "... " : message.substr(at, end - at);
    at = end;
  }
  return text;
}

}  // namespace

std::string without_library_words(const std::string& message) {
  const std::string begin = "Could not convert: ";
  if (!message.starts_with(begin)) return message;
  std::string given = message.substr(begin.size());
  if (const size_t at = given.find(" = "); at != given.npos) given.replace(at, 3, " ");
  return given + ": is not a number of the kind that is wanted";
}

std::string explanation_of(const std::filesystem::filesystem_error& error) {
  return error.path1().string() + ": " + error.code().message();
}

void say_to_stderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int complain(const std::string& message) {
  std::string text = printable(with_short_words(message));
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 3) text.replace(at, 1, "\n  ");
  if (others_first) std::this_thread::sleep_for(std::chrono::seconds(2));
  say_to_stderr("tessera: " + text + "\n");
  return static_cast<int>(ExitCode::bad_usage);
}

void let_others_complain_first() { others_first = true; }

}  // namespace tessera
