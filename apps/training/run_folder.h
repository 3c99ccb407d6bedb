#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

// Where a run leaves what it is and what came of it:
//
//   config.json        all that is needed to repeat the run
//   metrics.csv        a row an epoch; the same bytes for the same config
//   events.jsonl       what happened when: starts, epochs with their speed, saves, the end
//   last.safetensors   the weights after the last epoch, best.safetensors those with the best accuracy
//   epoch-0010.safetensors  the weights after that epoch, where the config asks for some
//   state.safetensors  all that is needed to go on
//   report.html        the run to look at, written when it is finished
//
// Every file but events.jsonl, which grows by whole lines, is replaced atomically. One process at a time has
// a run; what one that was killed left half written is then removed.
class RunFolder {
 public:
  // Makes the folder and those above it. Fails if it holds a run.
  static RunFolder create(const std::filesystem::path& path, const Json& config);
  // A run that goes on. Fails unless the folder holds one, and while another process trains it.
  static RunFolder open(const std::filesystem::path& path);

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

  // Removes the weights of the epochs up to this one.
  void drop_epochs(int64_t last) const;

  // Keeps the header and the first `count` rows of metrics.csv; later ones come from epochs that are run
  // again.
  void keep_rows(size_t count);
  // Adds a row; `header` names the columns where it is the first.
  void add_row(const std::string& header, const std::string& row);
  // Adds a line to events.jsonl: {"event": name, "time": UTC, ...details}.
  void event(const std::string& name, const Json& details);

 private:
  explicit RunFolder(std::filesystem::path path);

  std::filesystem::path path_;
  std::vector<std::string> lines_;  // of metrics.csv
  int events_;                      // descriptor, locked
};

// `wanted`, or wanted-2, wanted-3 ...: the first that does not exist.
std::filesystem::path free_folder(const std::filesystem::path& wanted);

}  // namespace tessera
