#include "apps/training/log_marks.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/training/event_file.h"
#include "engine/io/checksum.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view crc_key = ",\"crc32c\":\"";

std::string crc_text(std::string_view line) { return fmt::format("{:08x}", crc32c(line)); }

std::string text_of(const fs::path& path) { return fs::exists(path) ? read_text(path) : ""; }

// The mark of watch.csv in a state's metadata.
LogMark watch_mark(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find("position");
  const Json at = found == metadata.end() ? Json() : Json::parse(found->second, nullptr, false);
  if (!at.is_object()) return {};
  const Json bytes = at.value("watch_bytes", Json()), sum = at.value("watch_sum", Json());
  if (!bytes.is_number_unsigned() || !sum.is_string()) return {};
  return {bytes.get<int64_t>(), sum.get<std::string>()};
}

}  // namespace

LogMark LogMark::of(std::string_view text) {
  Checksum sum;
  sum.add(text.data(), text.size());
  return {std::ssize(text), sum.text()};
}

bool LogMark::begins(std::string_view text) const {
  return bytes <= std::ssize(text) &&
         (sum.empty() || of(text.substr(0, static_cast<size_t>(bytes))).sum == sum);
}

std::vector<std::string> changed_logs(const fs::path& run,
                                      const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> changed;
  const auto expect = [&](const std::string& name, bool whole) {
    if (!whole)
      changed.push_back((run / name).string() +
                        ": is not what it was when the state was saved; what is drawn from it may be wrong");
  };
  for (const std::string table : {"metrics", "steps"})
    if (const auto rows = metadata.find(table); rows != metadata.end())
      expect(table + ".csv", text_of(run / (table + ".csv")).starts_with(rows->second));
  expect("watch.csv", watch_mark(metadata).begins(text_of(run / "watch.csv")));
  return changed;
}

std::string with_crc(const Json& event) {
  std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace);
  line.pop_back();  // the closing brace
  return line + std::string(crc_key) + crc_text(line) + "\"}";
}

bool contradicts_its_crc(const std::string& line) {
  const size_t at = line.rfind(crc_key);
  if (at == line.npos) return false;
  const std::string wanted = crc_text(std::string_view(line).substr(0, at)) + "\"}";
  const std::string found = line.substr(at + crc_key.size());
  return found.size() >= wanted.size() && found != wanted;
}

}  // namespace tessera
