// The files that a trainer writes into its run folder and reads back.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/number_watch.h"
#include "apps/training/run_identity.h"
#include "apps/training/saved_state.h"
#include "apps/training/trainer.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace {

constexpr const char* metrics_header =
    "epoch,step,lr,train_loss,train_accuracy,gradient_norm,skipped,validation_loss,validation_top1,"
    "validation_top5";
constexpr const char* segment_columns = ",validation_mean_iou,validation_pixel_accuracy";

// The key of the score in a checkpoint's metadata.
const char* key_of(Task task) {
  return task == Task::diffuse ? "loss" : task == Task::segment ? "mean_iou" : "top1";
}

// Fails for numbers that are not finite, before a good file is replaced by them.
void expect_finite(const NamedTensors& tensors, const std::filesystem::path& path) {
  if (const auto bad = first_not_finite(tensors))
    fail(path.string(), ": not written, what was there before is untouched: ", *bad,
         "; begin anew with a lower learning rate (--lr) or clipping (--set clip=1)");
}

}  // namespace

void Trainer::add_metrics(RunFolder& folder, const std::optional<Evaluation>& e) const {
  const auto share = accuracy();
  const auto number = [](double x) { return std::isnan(x) ? "" : fmt::format("{}", x); };
  const std::string row =
      fmt::format("{},{},{},{},{},{},{}", at_.epoch + 1, steps_done(), at_.lr, number(at_.loss()),
                  share ? number(*share) : "", number(at_.gradient_norm()), at_.skipped);
  const bool segments = task_ == Task::segment;
  folder.add_row(std::string(metrics_header) + (segments ? segment_columns : ""), row + "," +
                                                                                      (e          ? e->csv()
                                                                                       : segments ? ",,,,"
                                                                                                  : ",,"));
}

void Trainer::report_epoch(RunFolder& folder, const std::optional<Evaluation>& e, double seconds) {
  const double rate = static_cast<double>(epoch_clock_.images) / seconds;
  Json details{
      {"epoch", at_.epoch + 1},    {"train_loss", at_.loss()},
      {"skipped", at_.skipped},    {"seconds", seconds},
      {"images_per_second", rate}, {"wait_seconds", train_.wait_seconds() - epoch_clock_.waited_before}};
  std::string line = fmt::format("epoch {}/{}  train loss {:.4f}", at_.epoch + 1, epochs(), at_.loss());
  if (const auto share = accuracy()) {
    details["train_accuracy"] = *share;
    line += fmt::format(" acc {:.2f} %", 100 * *share);
  }
  if (e) {
    details.update(e->json());
    details["evaluation_seconds"] = evaluation_seconds_;
    line += "  validation " + e->text() + (at_.best_epoch == at_.epoch + 1 ? " (best)" : "");
  }
  if (at_.skipped > 0) line += fmt::format("  {} steps left out", at_.skipped);
  line += fmt::format("  {:.0f} img/s", rate);
  if (progress_.verbosity() == Verbosity::verbose)
    line += fmt::format("  lr {:.2e}  gradient {:.3g}  {:.1f} s, {:.1f} s of it waiting, evaluation {:.1f} s",
                        at_.lr, at_.gradient_norm(), seconds, details["wait_seconds"].get<double>(),
                        e ? evaluation_seconds_ : 0.0);
  progress_.epoch(line, at_.best_epoch == at_.epoch + 1);
  folder.event("epoch", details);
  if (board_) board_->epoch(steps_done(), details, model_.parameters);
}

void Trainer::save_weights(const std::filesystem::path& path) const {
  if (!ranks_.is_first()) return;
  const NamedTensors weights = model_.parameters.state();
  expect_finite(weights, path);
  write_checkpoint(path, weights, config_.model, facts_,
                   {{"epoch", at_.epoch + 1},
                    {"step", steps_done()},
                    {key_of(task_), task_ == Task::diffuse ? -at_.last_score : at_.last_score},
                    {"seed", config_.seed}});
}

NamedTensors Trainer::state() const {
  NamedTensors tensors;
  append_with_prefix(tensors, "model.", model_.parameters.state());
  append_with_prefix(tensors, "optimizer.", optimizer_->state());
  if (average_) append_with_prefix(tensors, "average.", average_->state());
  return tensors;
}

void Trainer::load(const NamedTensors& state, const std::string& where) {
  model_.parameters.load(with_prefix(state, "model."), where);
  optimizer_->load_state(with_prefix(state, "optimizer."), where);
  if (average_) average_->load_state(with_prefix(state, "average."), where);
}

void Trainer::share_state() {
  if (ranks_.alone()) return;
  at_ = read_position(parse_json(broadcast(ranks_, to_json(at_).dump()), "rank 0"), "rank 0");
  NamedTensors tensors;
  for (const auto& [name, value] : state()) {
    const Tensor host = value.to(Device::cpu).clone();
    broadcast(ranks_, host.raw(), static_cast<size_t>(host.elements()) * size_of(host.dtype()));
    tensors.emplace_back(name, host);
  }
  load(tensors, "rank 0");
}

void Trainer::save_state(const RunFolder& folder) {
  if (watch_) at_.watch = watch_->save();
  if (step_file_) step_file_->save();
  if (!ranks_.is_first()) return;
  const NamedTensors tensors = state();
  expect_finite(tensors, folder.state());
  // A state within an epoch is not kept: what is kept does not depend on when a run was interrupted.
  if (ends_epoch_) folder.keep_previous_state();
  write_safetensors(folder.state(), tensors,
                    {{"format", state_format()},
                     {"position", to_json(at_).dump()},
                     {"config", identity_of(config_).dump()},
                     {"metrics", folder.rows()},
                     {"steps", StepFile::text_in(folder.path())},
                     {"precision", std::string(name(precision_))}});
  ends_epoch_ = at_.step == 0 && at_.epoch > 0;
  saved_ = Clock::now();
}

bool Trainer::restore(RunFolder& folder, const std::vector<std::string>& changed) {
  const std::optional<TensorFile> file = read_saved_state(folder);
  if (file)
    restore(folder, *file, changed);
  else
    folder.keep_rows(0);
  return file.has_value();
}

void Trainer::restore(RunFolder& folder, const TensorFile& file, const std::vector<std::string>& changed) {
  if (file.checked) {  // the older format knows no more
    expect_same_run(file, config_, changed);
    folder.restore_rows(metadata_of(file, "metrics"));
    if (const auto rows = file.metadata.find("steps"); rows != file.metadata.end())
      StepFile::restore(folder.path(), rows->second);
  }
  if (const auto before = saved_precision(file); before && *before != precision_)
    fmt::print(stderr, "warning: {}: the run was computing in {} and goes on in {}, with other bits\n",
               folder.path().string(), name(*before), name(precision_));
  const std::string where = file.where + ": position";
  at_ = read_position(parse_json(metadata_of(file, "position"), where), where);
  check(at_.epoch <= epochs(), file.where, ": stands after ", at_.epoch,
        " epochs, behind the end of a run of ", epochs(), "; give --epochs N, more than ", at_.epoch);
  check(at_.step <= train_.batches(), file.where, ": stands at step ", at_.step, " of an epoch, which has ",
        train_.batches(), " steps; was it another data set?");
  check(at_.skipped <= at_.step, file.where, ": says that ", at_.skipped, " of ", at_.step,
        " steps were left out");
  load(file.tensors, file.where);
  ends_epoch_ = at_.step == 0 && at_.epoch > 0 && file.where == folder.state().string();
  folder.keep_rows(static_cast<size_t>(at_.epoch));
  if (file.checked && !finished() && !differences_from(file, config_).empty()) save_state(folder);
}

}  // namespace tessera
