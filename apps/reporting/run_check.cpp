#include "apps/reporting/run_check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "apps/reporting/run_record.h"
#include "apps/training/checkpoint.h"
#include "apps/training/run_folder.h"
#include "apps/training/saved_state.h"
#include "apps/training/train_state.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// Examines the files one after another; each may say what to do only when it is known which others are whole.
class Examination {
 public:
  explicit Examination(const fs::path& run) : run_(run) {}

  std::vector<Diagnosis> all() {
    examine_config();
    read_record();
    examine_states();
    examine_weights();
    examine_metrics();
    examine_events();
    examine_leftovers();
    examine_data();
    examine_disk();
    examine_lock();
    conclude();
    return std::move(found_);
  }

 private:
  void add(const std::string& subject, const std::string& verdict, const std::string& message,
           const std::string& advice = "") {
    const std::string own = (run_ / subject).string() + ": ";  // the subject says so already
    const bool denied =
        verdict == "WRONG" && has(subject.c_str()) && access((run_ / subject).c_str(), R_OK) != 0;
    found_.push_back({subject, verdict, message.starts_with(own) ? message.substr(own.size()) : message,
                      denied ? "Change its owner or mode" : advice});
  }
  std::string resume() const { return "tessera train --resume " + run_.string(); }
  bool has(const char* name) const { return fs::exists(run_ / name); }

  void examine_config() {
    const fs::path path = run_ / "config.json";
    try {
      config_ = read_train_config(read_json(path), path.string());
      add("config.json", "ok", model_name(*config_) + " on " + config_->data.name);
    } catch (const std::exception& error) {
      add("config.json", "WRONG", error.what(),
          "Put back the file as it was. A whole state keeps the config it was saved under in its metadata, "
          "and every "
          "checkpoint the model's, so evaluation goes on without it");
    }
  }

  void read_record() {
    if (!config_) return;  // a record begins with the config, which has been told of
    try {
      record_ = read_run(run_);
    } catch (const std::exception& error) {
      record_error_ = error.what();
    }
  }

  // The position of a whole state; nothing where it cannot be gone on with.
  std::optional<Position> examine_state(const char* name, const std::string& advice) {
    if (!has(name)) return std::nullopt;
    try {
      const TensorFile file = read_state(run_ / name);
      if (file.checked && config_)
        expect_same_run(file, *config_,
                        record_ ? keys_changed_on_the_way(*record_) : std::vector<std::string>());
      const Position at = read_position(parse_json(metadata_of(file, "position"), file.where), file.where);
      add(name, "ok", fmt::format("after epoch {}, step {} of the next", at.epoch, at.step));
      return at;
    } catch (const std::exception& error) {
      add(name, "WRONG", error.what(), advice);
      return std::nullopt;
    }
  }

  void examine_states() {
    const size_t first = found_.size();
    const auto last = examine_state("state.safetensors", "");
    const bool damaged = found_.size() > first && !last;
    const auto previous =
        examine_state("state.previous.safetensors", last ? "Nothing: the next epoch writes it anew" : "");
    position_ = last ? last : previous;
    for (Diagnosis& d : found_)
      if (d.wrong() && d.advice.empty())
        d.advice = damaged && previous
                       ? resume() + " goes on from state.previous.safetensors, an epoch before"
                       : "The run cannot be gone on with. Its weights can begin another: tessera "
                         "train --init " +
                             run_.string() + " --recipe " + (run_ / "config.json").string();
  }

  void examine_weights() {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(run_)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".safetensors") && !name.starts_with("state.") && !name.starts_with("."))
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) examine_checkpoint(name);
  }

  void examine_checkpoint(const std::string& name) {
    try {
      const Json training = read_checkpoint(run_ / name, Device::cpu).training;
      const Json epoch = training.is_object() ? training.value("epoch", Json()) : Json(),
                 step = training.is_object() ? training.value("step", Json()) : Json();
      add(name, "ok",
          !epoch.is_number() ? "weights"
          : step.is_number()
              ? fmt::format("weights of epoch {}, after {} steps of the run", epoch.dump(), step.dump())
              : "weights of epoch " + epoch.dump());
    } catch (const std::exception& error) {
      if (!is_of_a_run(name))
        return add(name, "note", std::string("no file that a run writes: ") + error.what());
      add(name, "WRONG", error.what(), advice_on_checkpoint(name));
    }
  }

  static bool is_of_a_run(const std::string& name) {
    return name == "last.safetensors" || name == "best.safetensors" || name.starts_with("epoch-");
  }

  std::string advice_on_checkpoint(const std::string& name) const {
    if (!position_) return "Take it from a copy; nothing else in the folder holds these weights";
    if (is_finished()) return "Take it from a copy; no epoch is left that would write it anew";
    if (name == "last.safetensors") return "Nothing: the next epoch writes it anew";
    return name == "best.safetensors" ? "Take it from a copy, or go on: the next better epoch writes it anew"
                                      : "Take it from a copy; no other epoch writes it";
  }

  // The events alone know how many epochs a run with `steps` or patience has.
  bool is_finished() const {
    if (!position_ || !config_) return false;
    if (config_->steps == 0 && position_->epoch >= config_->epochs) return true;
    if ((config_->steps == 0 && config_->patience == 0) || !record_ || record_->events.empty()) return false;
    return record_->events.back().value("event", Json()) == Json("finished");
  }

  void examine_metrics() {
    const std::string resumed = position_ ? resume() + " takes the rows that the state keeps" : "";
    if (!record_error_.empty())
      return add("metrics.csv", "WRONG", record_error_,
                 position_ ? resumed : "Mend the line, or remove the file");
    if (!record_) return;
    const int64_t epochs = record_->epochs();
    if (has("metrics.csv")) add("metrics.csv", "ok", fmt::format("{} epochs", epochs));
    for (const std::string& sentence : record_->changed)
      add("logs", "WRONG", sentence, "Take the file from a copy; weights and state do not depend on it");
    if (position_ && epochs < position_->epoch)
      add("metrics.csv", "WRONG",
          fmt::format("has {} rows, the state is that after epoch {}", epochs, position_->epoch), resumed);
  }

  // A changed line is told with the other logs.
  void examine_events() {
    if (!has("events.jsonl")) return;
    if (access((run_ / "events.jsonl").c_str(), R_OK) != 0)
      return add("events.jsonl", "WRONG", std::string("cannot be read: ") + std::strerror(errno));
    std::istringstream lines(read_text(run_ / "events.jsonl"));
    int64_t count = 0, broken = 0;
    for (std::string line; std::getline(lines, line); ++count) broken += !Json::accept(line);
    if (broken == 0) return add("events.jsonl", "ok", fmt::format("{} events", count));
    add("events.jsonl", "note",
        fmt::format("{} of {} lines are not JSON, as a kill leaves one", broken, count),
        "Nothing: they are skipped");
  }

  void examine_leftovers() {
    int64_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(run_))
      count += entry.path().filename().string().ends_with(".partial");
    if (count > 0)
      add("run", "note", fmt::format("{} files that a killed process left half written", count),
          "Nothing: the next session removes them");
  }

  void examine_data() {
    std::error_code denied;
    if (!config_ || config_->data.dir.empty() || fs::exists(config_->data.dir, denied) || denied) return;
    add("data", "WRONG", "there is no " + config_->data.dir + ", where config.json has the data",
        "Give --data DIR to train --resume, eval, diagnose and report");
  }

  // A checkpoint is written beside the one that it replaces.
  void examine_disk() {
    std::error_code none;
    uintmax_t largest = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(run_))
      if (entry.is_regular_file(none)) largest = std::max(largest, entry.file_size(none));
    const fs::space_info space = fs::space(run_, none);
    if (!none && space.available < 3 * largest)
      add("disk", "WRONG",
          fmt::format("{} MB are free, the next checkpoint needs about {} MB", space.available >> 20,
                      3 * largest >> 20),
          "Free some space before going on");
    if (access(run_.c_str(), W_OK) != 0)
      add("run", "WRONG", "the folder cannot be written to", "Change its owner or mode before going on");
  }

  void examine_lock() {
    const int file = open((run_ / "events.jsonl").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (flock(file, LOCK_SH | LOCK_NB) != 0) {
      add("lock", "note", "another process trains this run at the moment");
      trained_now_ = true;
    }
    close(file);
  }

  void conclude() {
    const bool wrong = std::ranges::any_of(found_, &Diagnosis::wrong);
    if (!position_ || !config_ || trained_now_) return;
    if (is_finished()) return add("run", "ok", "finished");
    const std::string all = config_->steps == 0 ? fmt::format(" of {}", config_->epochs) : "";
    add("run", "note", fmt::format("{}{} epochs are done", position_->epoch, all),
        wrong ? "" : "Go on with " + resume());
  }

  fs::path run_;
  std::vector<Diagnosis> found_;
  std::optional<TrainConfig> config_;
  std::optional<Position> position_;
  std::optional<RunRecord> record_;
  std::string record_error_;
  bool trained_now_ = false;
};

}  // namespace

bool looks_like_a_run(const fs::path& folder) {
  return std::ranges::any_of(
      std::array{"config.json", "state.safetensors", "events.jsonl", "metrics.csv", "last.safetensors"},
      [&](const char* name) { return fs::is_regular_file(folder / name); });
}

std::vector<Diagnosis> check_run(const fs::path& run) {
  check(fs::is_directory(run), run.string(), ": is no folder");
  check(looks_like_a_run(run), run.string(), ": holds no file of a run");
  return Examination(run).all();
}

Json to_json(const Diagnosis& d) {
  return {{"subject", d.subject}, {"verdict", d.verdict}, {"message", d.message}, {"advice", d.advice}};
}

}  // namespace tessera
