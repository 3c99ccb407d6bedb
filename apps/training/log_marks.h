#pragma once

// The tables and events of a run that grow beside its state: whether they are still what was written.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

// The beginning of a file that grows: its size in bytes and their XXH3.
struct LogMark {
  int64_t bytes = 0;
  std::string sum;

  // That of a whole text, and whether another text begins with it. No sum, as in states of versions before,
  // agrees with any.
  static LogMark of(std::string_view text);
  bool begins(std::string_view text) const;
};

// A sentence for each of metrics.csv, steps.csv and watch.csv whose beginning differs from what the state
// with this metadata was saved beside. Nothing is said of rows that came later.
std::vector<std::string> changed_logs(const std::filesystem::path& run,
                                      const std::map<std::string, std::string>& metadata);

// A line of events.jsonl, without its end, with the CRC-32C of all before it as its last member.
std::string with_crc(const Json& event);
// Whether a line has another CRC than it says. One that a kill has cut short does not contradict, nor one
// without any, as versions before wrote them.
bool contradicts_its_crc(const std::string& line);

}  // namespace tessera
