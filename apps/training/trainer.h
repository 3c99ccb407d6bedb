#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "apps/training/checkpoint.h"
#include "apps/training/config.h"
#include "apps/training/evaluation.h"
#include "apps/training/precision.h"
#include "apps/training/progress.h"
#include "apps/training/run_folder.h"
#include "apps/training/tensorboard.h"
#include "apps/training/train_state.h"
#include "engine/optim/ema.h"
#include "engine/optim/schedule.h"

namespace tessera {

// When a session ends early, as if it were interrupted; 0: never.
struct StopAfter {
  int64_t steps = 0;
  double seconds = 0;
};

enum class Ending { finished, interrupted, stopped };

// A training run: steps, evaluation after each epoch, and the files of its folder. The same config gives the
// same files (but for the times in events.jsonl), however often the run is broken off, on any number of
// threads.
class Trainer {
 public:
  // Builds all that can fail before a folder is made. `config.model` is the model's whole config.
  Trainer(const TrainConfig& config, const Dataset& dataset, const Computing& computing);
  ~Trainer();

  // Goes back to the folder's saved state; false, and the run begins anew, if it has none yet.
  bool restore(RunFolder& folder);
  // Trains until all is done, a signal comes, or `stop`. The state is saved then.
  Ending run(RunFolder& folder, const StopAfter& stop);

  // One step on the next batch at this learning rate: its loss, NaN where it was left out. For a search of
  // learning rates; a trainer that did so has no run to go on with.
  double try_rate(double lr);

  // Steps as run() takes them, but no evaluation and no file, while go_on() says so; waits for the last of
  // them. Returns their number. For a benchmark; it leaves no run to go on with either.
  int64_t rehearse(const std::function<bool()>& go_on);

  const Position& position() const { return at_; }
  const Model& model() const { return model_; }
  // The validation pass after the best epoch, for a report; null where it was not in this session, or of a
  // segmenter and not the last one, for to judge each of its pictures takes time.
  const JudgedPass* best_pass() const { return best_pass_ ? &*best_pass_ : nullptr; }
  int64_t epochs() const;  // the last one perhaps in part
  int64_t steps_in_epoch() const { return train_.batches(); }
  bool data_on_device() const { return train_.resident(); }      // the training pictures' bytes
  double wait_seconds() const { return train_.wait_seconds(); }  // that steps stood still for data
  int64_t steps_done() const { return at_.epoch * train_.batches() + at_.step; }
  bool finished() const { return at_.epoch >= epochs(); }

 private:
  using Clock = std::chrono::steady_clock;

  // Of this session's part of the epoch.
  struct EpochClock {
    Clock::time_point began{};
    double waited_before = 0;
    int64_t images = 0;
  };

  int64_t total_steps() const;
  int64_t steps_in(int64_t epoch) const;
  bool stopping() const;
  bool save_is_due() const;  // after the last step that was begun

  bool train_epoch(RunFolder& folder);   // false where it was broken off
  bool finish_epoch(RunFolder& folder);  // likewise
  StepBatch step_batch(const Batch& batch) const;
  void start_step(const Batch& batch);
  // Finishes steps until `left` of them are under way. Without a folder trouble is said, and ends nothing.
  void finish_steps(RunFolder* folder, size_t left);
  size_t most_left() const { return static_cast<size_t>(step_.most_under_way() - 1); }
  int64_t steps_begun() const { return at_.step + std::ssize(under_way_); }  // in this epoch
  void note_trouble(RunFolder& folder, const std::string& trouble);
  void show(bool last);
  std::optional<Evaluation> evaluate_now();
  std::optional<double> accuracy() const;  // over the epoch so far, of a classifier

  // In trainer_files.cpp.
  void add_metrics(RunFolder& folder, const std::optional<Evaluation>& evaluation) const;
  void report_epoch(RunFolder& folder, const std::optional<Evaluation>& evaluation, double seconds);
  void save_weights(const std::filesystem::path& path) const;  // those that were evaluated
  void save_state(const RunFolder& folder);

  TrainConfig config_;
  Task task_;
  DataFacts facts_;
  Device device_;
  Model model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> average_;  // of the weights, where the config asks for one
  TrainStep step_;
  Loader train_;
  std::unique_ptr<Loader> validation_;
  Schedule schedule_;

  struct Begun {
    Batch batch;
    double lr;
  };

  Position at_;                  // of the steps that are finished; its random state, of those begun
  std::deque<Begun> under_way_;  // steps that are begun and not finished
  StopAfter stop_;
  int64_t session_steps_ = 0;
  double evaluation_seconds_ = 0;
  std::optional<JudgedPass> best_pass_;
  EpochClock epoch_clock_;
  Clock::time_point began_{}, saved_{};
  Progress progress_;
  std::optional<TensorBoard> board_;
};

}  // namespace tessera
