#include "apps/training/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "apps/training/log_marks.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// A run replaces the files of the first list atomically, and appends to those of the second.
constexpr const char* replaced_files[] = {"config.json",       "metrics.csv",
                                          "last.safetensors",  "best.safetensors",
                                          "state.safetensors", "state.previous.safetensors"};
constexpr const char* growing_files[] = {"events.jsonl", "steps.csv", "watch.csv", "notes.txt"};

bool is_named(const fs::path& path, std::span<const char* const> names) {
  return std::ranges::find(names, path.filename()) != names.end();
}

// A config.json alone may be anything's: timm's exports have one too.
bool holds_run(const fs::path& folder) {
  std::error_code none;
  if (!fs::exists(folder / "config.json", none)) return false;
  return std::ranges::any_of(std::span(replaced_files).subspan(1),
                             [&](const char* name) { return fs::exists(folder / name, none); }) ||
         fs::exists(folder / "events.jsonl", none);
}

// The epoch of "epoch-0010.safetensors"; none of another name.
std::optional<int64_t> epoch_of(const fs::path& path) {
  const std::string name = path.filename();
  long long epoch = 0;
  if (std::sscanf(name.c_str(), "epoch-%lld.safetensors", &epoch) != 1) return std::nullopt;
  return epoch;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Returns 0, or the errno that kept some of the bytes from being written.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

void append(int descriptor, std::string_view bytes, const fs::path& path) {
  const int error = write_all(descriptor, bytes);
  check(error == 0, path.string(), ": cannot be written: ", std::strerror(error));
}

// Ends a line that a killed process left incomplete, so that the next event has a line of its own.
void end_last_line(int descriptor, const fs::path& path) {
  const off_t size = lseek(descriptor, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && pread(descriptor, &last, 1, size - 1) == 1 && last != '\n') append(descriptor, "\n", path);
}

}  // namespace

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  const fs::path file = path_ / "events.jsonl";
  events_ = ::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  check(events_ >= 0, file.string(), ": cannot be opened: ", std::strerror(errno));
  if (flock(events_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(events_);
    check(error == EWOULDBLOCK, file.string(), ": cannot be locked: ", std::strerror(error));
    fail(path_.string(), ": another process trains this run at the moment");
  }
  end_last_line(events_, file);
  remove_partial_files(path_);
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lines_(std::move(other.lines_)),
      events_(std::exchange(other.events_, -1)),
      echo_(other.echo_),
      echo_error_(other.echo_error_) {}

RunFolder::~RunFolder() {
  if (events_ >= 0) close(events_);
}

RunFolder RunFolder::create(const fs::path& path, const Json& config) {
  for (const char* name : replaced_files)
    check(!fs::exists(path / name), path.string(), ": holds a run already (", name, "); go on with --resume ",
          path.string(), ", or give another --out");
  std::error_code error;
  fs::create_directories(path, error);
  check(!error, path.string(), ": the run folder cannot be made: ", error.message());
  RunFolder folder(path);
  write_json(folder.config(), config);
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  check(fs::is_regular_file(path / "config.json"), path.string(),
        ": no run to go on with; a run folder has a config.json");
  RunFolder folder(path);
  if (fs::exists(folder.metrics())) {
    std::istringstream text(read_text(folder.metrics()));
    for (std::string line; std::getline(text, line);) folder.lines_.push_back(line);
  }
  return folder;
}

fs::path RunFolder::of_epoch(int64_t epoch) const {
  return path_ / fmt::format("epoch-{:04}.safetensors", epoch);
}

void RunFolder::drop_epochs(int64_t last) const {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::optional<int64_t> epoch = epoch_of(entry.path());
    if (epoch && *epoch <= last && entry.path() == of_epoch(*epoch)) fs::remove(entry.path());
  }
}

void RunFolder::keep_rows(size_t count) {
  check(count == 0 || lines_.size() > count, metrics().string(), ": has ",
        lines_.empty() ? 0 : lines_.size() - 1, " rows, the saved state is that after epoch ", count);
  lines_.resize(count == 0 ? 0 : count + 1);
}

void RunFolder::add_row(const std::string& header, const std::string& row) {
  if (lines_.empty()) lines_.push_back(header);
  lines_.push_back(row);
  if (events_ >= 0) write_file_atomically(metrics(), rows());
}

std::string RunFolder::rows() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

void RunFolder::restore_rows(const std::string& rows) {
  if (this->rows().starts_with(rows)) return;
  fmt::print(stderr, "warning: {}: has been changed; the rows of the saved state take its place\n",
             metrics().string());
  lines_.clear();
  std::istringstream text(rows);
  for (std::string line; std::getline(text, line);) lines_.push_back(line);
  write_file_atomically(metrics(), rows);
}

// A copy, not a second name, so that no bad block of a disk is in both.
void RunFolder::keep_previous_state() const { write_file_atomically(previous_state(), read_text(state())); }

void RunFolder::event(const std::string& name, const Json& details) {
  if (events_ < 0) return;
  Json line{{"event", name}, {"time", utc_now()}};
  if (details.is_object()) line.update(details);
  const std::string text = with_crc(line) + "\n";
  append(events_, text, path_ / "events.jsonl");
  if (echo_ < 0) return;
  echo_error_ = write_all(echo_, text);
  if (echo_error_ != 0) echo_ = -1;  // the run does not depend on who listens
}

bool is_file_of_run(const fs::path& path) {
  std::error_code none;
  const fs::path file = fs::weakly_canonical(path, none);
  const bool kept = is_named(file, replaced_files) || is_named(file, growing_files) || epoch_of(file);
  return kept && holds_run(file.parent_path());
}

void add_note(const fs::path& run, const std::string& text) {
  check(fs::is_regular_file(run / "config.json"), run.string(),
        ": is not a run folder: it has no config.json");
  std::string line = text;
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  const fs::path path = run / "notes.txt";
  write_file_atomically(path, (fs::exists(path) ? read_text(path) : "") + utc_now() + "  " + line + "\n");
}

std::vector<std::string> notes_of(const fs::path& run) {
  std::vector<std::string> notes;
  if (!fs::exists(run / "notes.txt")) return notes;
  std::istringstream text(read_text(run / "notes.txt"));
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) notes.push_back(line);
  return notes;
}

fs::path free_folder(const fs::path& wanted) {
  fs::path path = wanted;
  for (int number = 2; fs::exists(path); ++number) path = wanted.string() + "-" + std::to_string(number);
  return path;
}

}  // namespace tessera
