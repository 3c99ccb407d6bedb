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
#include "apps/training/ranks.h"
#include "apps/training/run_folder.h"
#include "apps/training/step_file.h"
#include "apps/training/tensorboard.h"
#include "apps/training/time_plan.h"
#include "apps/training/train_state.h"
#include "apps/training/watch_file.h"
#include "engine/io/safetensors.h"
#include "engine/optim/ema.h"
#include "engine/optim/schedule.h"

namespace tessera {

/// Ends a session early, as an interrupt would, after so many steps or so long; 0: never.
struct StopAfter {
  int64_t steps = 0;
  double seconds = 0;
  /// The time in which the run has to be finished: its length and its schedule's are fitted to the speed that
  /// is seen, so that it ends in time and with a decayed learning rate. 0: as long as the config says.
  double budget = 0;
  double evaluation_seconds = 0;  ///< of an evaluation, until the session's first one; 0: unknown
};

enum class Ending { finished, interrupted, stopped };

/// A training run: steps, evaluation after each epoch, and the files of its folder. The same config gives the
/// same files (except for the times in events.jsonl), however often the run is interrupted and resumed, on
/// any number of threads and of ranks, of which the first writes and prints.
class Trainer {
 public:
  /// Builds everything that can fail, so that a folder is made only for a run that can start. `config.model`
  /// is the model's whole config (resolve_model). Fails for a config that the model, the data or the device
  /// cannot follow.
  Trainer(const TrainConfig& config, const Dataset& dataset, const Computing& computing);
  ~Trainer();

  /// Loads the folder's saved state or, where that is damaged, the one before it, with a word. Returns false
  /// if there is none yet; the run then begins anew. Fails for a state that was saved under another config,
  /// keys in `changed` apart, and for one that is damaged where there is no other.
  bool restore(RunFolder& folder, const std::vector<std::string>& changed = {});
  /// The same for a state that has been read. Says so on stderr where it was computed in another precision.
  void restore(RunFolder& folder, const TensorFile& state, const std::vector<std::string>& changed);
  /// Gives every rank the first one's weights, moments and position, as each needs before it runs. Only the
  /// first one has to restore().
  void share_state();
  /// Trains until all epochs are done, a signal comes, or `stop` says so, and saves the state then.
  Ending run(RunFolder& folder, const StopAfter& stop);

  /// Takes one step on the next batch at this learning rate and returns its loss, NaN if it was left out. For
  /// a search of learning rates; the trainer cannot run() after it.
  double try_learning_rate(double lr);

  /// Takes steps as run() does, without evaluation and files, as long as go_on() is true, and waits for the
  /// last one. Returns their number. For benchmarks; the trainer cannot run() after it.
  int64_t take_steps(const std::function<bool()>& go_on);

  /// Takes steps for about so long, and evaluates for as long, to tell how fast a run goes here. The trainer
  /// cannot run() after it.
  Speed measure_speed(double seconds);

  /// How much the run says on stdout while it trains.
  void set_verbosity(Verbosity verbosity) { progress_.set_verbosity(verbosity); }

  const Position& position() const { return at_; }
  const Model& model() const { return model_; }
  /// About the weights that the run begins with; usually empty.
  const std::string& remark_on_init() const { return remark_on_init_; }
  /// The validation pass after the best epoch, for a report. Null if that epoch was not in this session, and
  /// for a segmenter unless it was the last one, because judging every picture is slow.
  const JudgedPass* best_pass() const { return best_pass_ ? &*best_pass_ : nullptr; }
  int64_t epochs() const;  ///< of the whole run; the last one may be shorter
  int64_t steps_in_epoch() const { return train_.batches(); }
  bool data_on_device() const { return train_.resident(); }  ///< whether the GPU keeps the training pictures
  double wait_seconds() const { return train_.wait_seconds(); }  ///< time in which steps waited for data
  int64_t micro_batch() const { return step_.micro_batch(); }    ///< 0: the whole batch
  int64_t steps_done() const { return at_.epoch * train_.batches() + at_.step; }
  bool finished() const { return at_.epoch >= epochs() || out_of_patience(); }
  /// Whether as many evaluations as the config has patience for brought no better score.
  bool out_of_patience() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// Measures the part of the epoch that is in this session.
  struct EpochClock {
    Clock::time_point began{};
    double waited_before = 0;
    int64_t images = 0;
  };

  int64_t total_steps() const;
  int64_t steps_in(int64_t epoch) const;
  bool stopping();
  bool interrupted();        ///< whether a signal has come to any rank
  bool save_is_due() const;  ///< after the step that was started last

  bool train_epoch(RunFolder& folder);   ///< false if it was interrupted
  bool finish_epoch(RunFolder& folder);  ///< false if it was interrupted
  StepBatch step_batch(const Batch& batch) const;
  void start_step(const Batch& batch);
  bool is_watched(int64_t step) const;  ///< counted from 1 over the whole run
  /// Finishes steps until `left` of them are under way. Without a folder, trouble is printed and never ends
  /// the run.
  void finish_steps(RunFolder* folder, size_t left);
  size_t most_left() const { return static_cast<size_t>(step_.most_under_way() - 1); }
  int64_t steps_started() const { return at_.step + std::ssize(under_way_); }  ///< in this epoch
  void note_step(const StepResult& result, double lr);
  void note_trouble(RunFolder& folder, const std::string& trouble);
  void show(bool last);
  void fit_to_time(RunFolder& folder);  ///< in time_plan.cpp
  std::optional<Evaluation> evaluate_now();
  std::optional<double> accuracy() const;  ///< on the training images of this epoch so far, of a classifier

  /// In trainer_files.cpp.
  void add_metrics(RunFolder& folder, const std::optional<Evaluation>& evaluation) const;
  void report_epoch(RunFolder& folder, const std::optional<Evaluation>& evaluation, double seconds);
  void save_weights(const std::filesystem::path& path) const;  ///< the weights that were evaluated
  void save_state(const RunFolder& folder);
  NamedTensors state() const;  ///< weights, moments and average
  void load(const NamedTensors& state, const std::string& where);
  void save_unevaluated(const RunFolder& folder) const;  ///< in trainer.cpp

  Ranks& ranks_;
  TrainConfig config_;
  Task task_;
  DataFacts facts_;
  Device device_;
  Precision precision_;
  std::string remark_on_init_;
  Model model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Ema> average_;  ///< of the weights, where the config asks for one
  TrainStep step_;
  Loader train_;
  std::unique_ptr<Loader> validation_;
  Schedule schedule_;

  struct StartedStep {
    Batch batch;
    double lr;
  };

  Position at_;  ///< after the last finished step, but its random state is that after the last started one
  std::deque<StartedStep> under_way_;  ///< started and not finished
  StopAfter stop_;
  int64_t session_steps_ = 0;
  double evaluation_seconds_ = 0;  ///< of the last one
  double evaluated_seconds_ = 0;   ///< of all in this session
  std::optional<JudgedPass> best_pass_;
  EpochClock epoch_clock_;
  Clock::time_point began_{}, saved_{}, fitted_{};
  Progress progress_;
  std::optional<TensorBoard> board_;
  std::optional<WatchFile> watch_;
  std::optional<StepFile> step_file_;  ///< of the first rank
  bool ends_epoch_ = false;            ///< whether state.safetensors is good, and that after a whole epoch
};

}  // namespace tessera
