#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// The folder of a training run:
///
///   config.json        the whole config, enough to repeat the run
///   metrics.csv        a row an epoch; the same bytes for the same config
///   events.jsonl       a line an event, with its time: starts, epochs with their speed, the end
///   last.safetensors   the weights after the last epoch, best.safetensors those with the best accuracy
///   epoch-0010.safetensors  the weights after that epoch, where the config asks for some
///   state.safetensors  all that is needed to resume
///   state.previous.safetensors  the same after the epoch before, should the first one be damaged
///   steps.csv          loss, learning rate and gradient norm of about a thousand steps of the run
///   watch.csv          rows about the layers of every so many steps, where the config asks for some
///   notes.txt          what its people wrote about it, a line each
///   report.html        a page about the run, written when it is finished
///
/// Files are replaced atomically; only events.jsonl, steps.csv and watch.csv grow, by whole lines. A lock
/// lets one process at a time train a run. Opening the folder removes files that a killed process left half
/// written.
class RunFolder {
 public:
  /// Makes the folder and those above it. Fails if it holds a run.
  static RunFolder create(const std::filesystem::path& path, const Json& config);
  /// Opens a run to resume it. Fails if the folder holds none, or another process is training it.
  static RunFolder open(const std::filesystem::path& path);

  /// The folder of a run that another process writes: nothing is written, and no file needs to be there.
  static RunFolder of_another_process(const std::filesystem::path& path) { return RunFolder(path, -1); }

  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.csv"; }
  std::filesystem::path last() const { return path_ / "last.safetensors"; }
  std::filesystem::path best() const { return path_ / "best.safetensors"; }
  std::filesystem::path of_epoch(int64_t epoch) const;
  std::filesystem::path state() const { return path_ / "state.safetensors"; }
  std::filesystem::path previous_state() const { return path_ / "state.previous.safetensors"; }

  /// Copies the saved state to the previous one, before a new one replaces it.
  void keep_previous_state() const;

  /// Removes the epoch-NNNN.safetensors of all epochs up to this one.
  void drop_epochs(int64_t last) const;

  /// Cuts metrics.csv to its header and first `count` rows; the later ones are of epochs that run again.
  void keep_rows(size_t count);
  /// The text of metrics.csv.
  std::string rows() const;
  /// Makes metrics.csv hold these rows again where it has others, with a word.
  void restore_rows(const std::string& rows);
  /// Adds a row to metrics.csv, after `header` if it is the first.
  void add_row(const std::string& header, const std::string& row);
  /// Adds a line to events.jsonl: {"event": name, "time": UTC, ...details}.
  void event(const std::string& name, const Json& details);
  /// Writes each event to this descriptor too, as the line of events.jsonl.
  void echo_events(int descriptor) { echo_ = descriptor; }
  /// The errno for which an event could not be written there, and those after it were not; 0: none.
  int echo_error() const { return echo_error_; }

 private:
  explicit RunFolder(std::filesystem::path path);
  RunFolder(std::filesystem::path path, int events) : path_(std::move(path)), events_(events) {}

  std::filesystem::path path_;
  std::vector<std::string> lines_;  ///< of metrics.csv
  int events_;     ///< descriptor of events.jsonl, which holds the lock; -1: another process writes
  int echo_ = -1;  ///< another that gets the events; -1: none
  int echo_error_ = 0;
};

/// Whether `path` is one of a run's files, there already or not: a name that the folder of a run keeps for
/// itself. Links are followed. report.html is none of them, as anyone may write it anew.
bool is_file_of_run(const std::filesystem::path& path);

/// Adds a line to notes.txt of a run folder, with the time (UTC) before it. Line ends in it become spaces.
/// Fails for a folder without config.json.
void add_note(const std::filesystem::path& run, const std::string& text);
/// The lines of notes.txt; none where there is no such file.
std::vector<std::string> notes_of(const std::filesystem::path& run);

/// `wanted`, or wanted-2, wanted-3 ...: the first that does not exist.
std::filesystem::path free_folder(const std::filesystem::path& wanted);

}  // namespace tessera
