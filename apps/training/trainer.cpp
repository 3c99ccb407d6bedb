#include "apps/training/trainer.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/interrupt.h"
#include "apps/training/run_parts.h"
#include "apps/training/validation.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr int64_t most_skipped = 3;  // steps left out in a row after which the run stops
constexpr uint64_t pass_tag = 1;     // names the random stream of dropout and drop path, split off the seed

// While it lives, the model has the averaged weights in place of its own, if the run keeps an average.
class AveragedWeights {
 public:
  explicit AveragedWeights(const std::optional<Ema>& average) : average_(average) { swap(); }
  ~AveragedWeights() { swap(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void swap() const {
    if (average_) average_->swap();
  }

  const std::optional<Ema>& average_;
};

LoaderOptions made_in_shares(LoaderOptions options, const TrainStep& step) {
  options.own = [&step](int64_t images) {
    const Share own = step.own_images(images);
    return std::pair(own.first, own.end());
  };
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, const Dataset& dataset, const Computing& computing)
    : ranks_(computing.ranks ? *computing.ranks : one_rank()),
      config_(config),
      task_(task_of(config.model)),
      facts_(config.data, dataset),
      device_(computing.device),
      precision_(computing.precision),
      model_(initial_model(config, computing.device, remark_on_init_)),
      optimizer_(make_optimizer(config.optimizer, model_.parameters)),
      average_(average_of(config, model_)),
      step_(model_, *optimizer_, step_options(config, model_, computing, average_)),
      train_(dataset.train, Pipeline::training(dataset, config.augment),
             made_in_shares(loader_options(config, dataset, model_, computing), step_)),
      validation_(validation_loader(dataset.validation, Pipeline(dataset), config, computing)),
      schedule_(schedule_of(config, train_.batches(), total_steps())) {
  at_.random = Random(static_cast<uint64_t>(config.seed)).split(pass_tag).state();
}

Trainer::~Trainer() = default;

int64_t Trainer::total_steps() const {
  return config_.steps > 0 ? config_.steps : config_.epochs * train_.batches();
}

int64_t Trainer::epochs() const { return (total_steps() + train_.batches() - 1) / train_.batches(); }

int64_t Trainer::steps_in(int64_t epoch) const {
  return std::min(train_.batches(), total_steps() - epoch * train_.batches());
}

bool Trainer::interrupted() {
  const int64_t signal = largest_of(ranks_, Interrupt::signal());
  if (signal != 0) Interrupt::note(static_cast<int>(signal));
  return signal != 0;  // one that comes to this rank now is for the next time
}

bool Trainer::stopping() {
  const bool enough = (stop_.steps > 0 && session_steps_ >= stop_.steps) ||
                      (stop_.seconds > 0 && seconds_since(began_) >= stop_.seconds);
  const bool agreed = largest_of(ranks_, enough) != 0;
  return interrupted() || agreed;
}

Ending Trainer::run(RunFolder& folder, const StopAfter& stop) {
  const Interrupt interrupt;
  stop_ = stop;
  session_steps_ = 0;
  began_ = saved_ = fitted_ = Clock::now();
  evaluated_seconds_ = 0;
  evaluation_seconds_ = std::max(evaluation_seconds_, stop_.evaluation_seconds);
  if (ranks_.is_first() && config_.tensorboard && !finished()) {
    board_.emplace(folder.path(), steps_done(), facts_.normalisation);
    if (steps_done() == 0) board_->begin(to_json(config_));
  }
  if (ranks_.is_first() && !finished()) step_file_.emplace(folder.path(), steps_done());
  if (config_.watch.every_steps > 0 && !finished()) watch_.emplace(folder.path(), at_.watch);
  while (!finished())
    if (!train_epoch(folder) || !finish_epoch(folder)) {
      progress_.clear();
      save_state(folder);
      if (!std::filesystem::exists(folder.last())) save_unevaluated(folder);
      return Interrupt::signal() != 0 ? Ending::interrupted : Ending::stopped;
    }
  return Ending::finished;
}

bool Trainer::train_epoch(RunFolder& folder) {
  train_.start(at_.epoch, at_.step);
  epoch_clock_ = {.began = Clock::now(), .waited_before = train_.wait_seconds()};
  while (at_.step < steps_in(at_.epoch)) {
    if (stopping()) return finish_steps(&folder, 0), false;
    fit_to_time(folder);
    start_step(*train_.next());
    const bool last = steps_started() == steps_in(at_.epoch), save = !last && save_is_due();
    finish_steps(&folder, last || save ? 0 : most_left());
    if (at_.step > 0) show(last);
    if (save) save_state(folder);
  }
  return true;
}

StepBatch Trainer::step_batch(const Batch& batch) const {
  return {batch.images,     targets_of(batch, task_), batch.other_labels, batch.lam,
          batch.token_maps, batch.token_views,        batch.shares,       batch.host_labels};
}

bool Trainer::is_watched(int64_t step) const {
  const int64_t every = config_.watch.every_steps;
  return every > 0 && (step == 1 || step % every == 0);
}

void Trainer::start_step(const Batch& batch) {
  const int64_t before = at_.epoch * train_.batches() + steps_started();
  const double lr = schedule_.lr(before);
  Pass pass{.training = true, .random = Random(at_.random), .answer_only = true};
  step_.start(step_batch(batch), lr, pass, is_watched(before + 1));
  at_.random = pass.random.state();
  under_way_.push_back({batch, lr});
  ++session_steps_;
}

void Trainer::finish_steps(RunFolder* folder, size_t left) {
  while (under_way_.size() > left) {
    const StartedStep started = std::move(under_way_.front());
    under_way_.pop_front();
    const StepResult result = step_.finish();
    const int64_t images = started.batch.images.dim(0);
    at_.add(result, images, started.lr);
    note_step(result, started.lr);
    if (!result.note.empty()) progress_.note(result.note);
    if (board_) board_->step(steps_done(), result, started.lr, started.batch);
    if (watch_ && !result.layers.empty()) watch_->add(steps_done(), result.layers);
    if (result.trouble && folder) note_trouble(*folder, *result.trouble);
    if (result.trouble && !folder) progress_.note(*result.trouble + "; the step is left out");
    epoch_clock_.images += images;
  }
}

void Trainer::note_step(const StepResult& result, double lr) {
  const int64_t step = steps_done();
  if (!step_file_ || !StepFile::has_row(step, total_steps())) return;
  const double epoch = static_cast<double>(step) / static_cast<double>(train_.batches());
  step_file_->add({step, epoch, result.loss, lr, result.gradient_norm});
}

double Trainer::try_learning_rate(double lr) {
  if (at_.step == 0) train_.start(at_.epoch);
  Pass pass{.training = true, .random = Random(at_.random), .answer_only = true};
  const StepResult result = step_(step_batch(*train_.next()), lr, pass);
  at_.random = pass.random.state();
  if (++at_.step == train_.batches()) at_.next_epoch();
  return result.trouble ? std::nan("") : result.loss;
}

int64_t Trainer::take_steps(const std::function<bool()>& go_on) {
  int64_t steps = 0;
  for (; go_on(); ++steps) {
    if (steps_started() == 0) train_.start(at_.epoch);
    start_step(*train_.next());
    const bool last = steps_started() == train_.batches();
    finish_steps(nullptr, last ? 0 : most_left());
    if (last) at_.next_epoch();
  }
  finish_steps(nullptr, 0);
  return steps;
}

bool Trainer::out_of_patience() const {
  return config_.patience > 0 && at_.step == 0 &&
         at_.epoch - at_.best_epoch >= config_.patience * config_.eval_every;
}

// The weights of a run that stops in its first epoch, which no evaluation has seen, so that they can be used.
void Trainer::save_unevaluated(const RunFolder& folder) const {
  const AveragedWeights averaged(average_);
  save_weights(folder.last());
}

void Trainer::note_trouble(RunFolder& folder, const std::string& trouble) {
  folder.event("skipped", {{"epoch", at_.epoch + 1}, {"step", at_.step}, {"why", trouble}});
  const std::string where = fmt::format("epoch {}, step {}: {}", at_.epoch + 1, at_.step, trouble);
  if (at_.skipped_in_a_row < most_skipped) return progress_.note(where + "; the step is left out");
  fail("train: ", where, "; ", most_skipped, " steps in a row went wrong, so the run stops. The weights are ",
       "those from before them, the files those of the last save. Begin anew with a lower learning rate ",
       "(--lr), a longer warm-up (--set schedule.warmup_epochs=N) or clipping (--set clip=1): tessera train ",
       "--recipe ", folder.config().string(), " --lr ", config_.optimizer.lr / 10, " --out NEW");
}

bool Trainer::save_is_due() const {
  const int64_t every = config_.checkpoint.every_steps;
  const double minutes = config_.checkpoint.every_minutes;
  const bool late = minutes > 0 && seconds_since(saved_) >= 60 * minutes;
  return (every > 0 && steps_started() % every == 0) ||
         (minutes > 0 && largest_of(ranks_, ranks_.is_first() && late) != 0);  // by one clock for all
}

void Trainer::show(bool last) {
  const double elapsed = seconds_since(epoch_clock_.began),
               waited = train_.wait_seconds() - epoch_clock_.waited_before;
  const double rate = static_cast<double>(epoch_clock_.images) / elapsed;
  const double left = static_cast<double>((total_steps() - steps_done()) * config_.batch) / rate +
                      static_cast<double>(epochs() - at_.epoch) * evaluation_seconds_ /
                          static_cast<double>(config_.eval_every);
  progress_.show({at_.epoch + 1, epochs(), at_.step, steps_in(at_.epoch), at_.loss(), accuracy(), at_.lr,
                  rate, waited / elapsed, left},
                 last);
}

bool Trainer::finish_epoch(RunFolder& folder) {
  const double seconds = seconds_since(epoch_clock_.began);
  const int64_t number = at_.epoch + 1;
  std::optional<Evaluation> evaluation;
  {
    const AveragedWeights averaged(average_);
    if (number % config_.eval_every == 0 || number == epochs()) {
      evaluation = evaluate_now();
      if (!evaluation) return false;
      if (at_.best_epoch == number) save_weights(folder.best());
    }
    save_weights(folder.last());
    if (const int64_t every = config_.checkpoint.every_epochs; every > 0 && number % every == 0) {
      save_weights(folder.of_epoch(number));
      if (config_.checkpoint.keep > 0 && ranks_.is_first())
        folder.drop_epochs(number - config_.checkpoint.keep * every);
    }
  }
  add_metrics(folder, evaluation);
  report_epoch(folder, evaluation, seconds);
  at_.next_epoch();
  save_state(folder);
  return true;
}

std::optional<Evaluation> Trainer::evaluate_now() {
  const Clock::time_point began = Clock::now();
  const auto go_on = [this](int64_t images) {
    progress_.show(fmt::format("epoch {}/{}  evaluating, {} images", at_.epoch + 1, epochs(), images));
    return !interrupted();
  };
  const bool judges = task_ == Task::classify || at_.epoch + 1 == epochs();
  const Model& model = task_ == Task::diffuse ? model_ : step_.evaluation_model();  // see evaluation_dtype()
  std::vector<Judgement> judgements;
  EvaluateOptions options = validation_options(config_, {.device = device_, .ranks = &ranks_});
  options.go_on = go_on;
  options.judgements = judges ? &judgements : nullptr;
  const auto evaluation = evaluate(model, *validation_, options);
  if (!evaluation) return std::nullopt;
  evaluation_seconds_ = seconds_since(began);
  evaluated_seconds_ += evaluation_seconds_;
  at_.last_score = evaluation->score();
  if (!std::isfinite(evaluation->loss()) || !std::isfinite(at_.last_score)) return evaluation;
  if (at_.best_epoch == 0 || at_.last_score > at_.best_score) {
    at_.best_score = at_.last_score;
    at_.best_epoch = at_.epoch + 1;
    best_pass_.reset();
    if (judges) best_pass_ = JudgedPass{*evaluation, std::move(judgements)};
  }
  return evaluation;
}

std::optional<double> Trainer::accuracy() const {
  if (task_ != Task::classify) return std::nullopt;
  return at_.accuracy();
}

}  // namespace tessera
