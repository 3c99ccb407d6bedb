#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/model_bench.h"
#include "apps/options/options.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/profile.h"
#include "apps/reporting/table.h"
#include "apps/training/step.h"
#include "apps/training/task.h"
#include "engine/check/memory_rate.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "models/presets.h"

namespace tessera {

namespace {

struct Options : ModelBench {
  TrainConfig train;
  std::vector<std::string> presets;
  bool profile = false, all = false;
  Precision precision = Precision::f32;
};

constexpr Column columns[] = {
    {"model", "model"},
    {"batch", "batch", as_integer},
    {"micro_batch", "micro-batch", as_integer},
    {"precision", "precision"},
    {"threads", "threads", as_integer},
    {"images_per_second", "images/s", as_rate},
    {"step_seconds", "a step", as_seconds},
    {"best_step_seconds", "the best", as_seconds},
    {"forward_seconds", "forward", as_seconds},
    {"backward_seconds", "backward", as_seconds},
    {"optimizer_seconds", "optimizer", as_seconds},
    {"gflops", "GFLOP/s", as_rate},
    {"gemm_peak_gflops", "GEMM peak", as_rate},
    {"share_of_peak", "share of peak", as_percent},
    {"peak_memory_bytes", "peak memory", as_bytes},
};

// Of these a row in the table of several presets.
constexpr Column short_columns[] = {
    {"model", "model"},
    {"images_per_second", "images/s", as_rate},
    {"step_seconds", "a step", as_seconds},
    {"gflops", "GFLOP/s", as_rate},
    {"share_of_peak", "share of peak", as_percent},
    {"peak_memory_bytes", "peak memory", as_bytes},
};

constexpr Column profile_columns[] = {
    {"op", "operation"},
    {"forward_seconds", "forward", as_seconds},
    {"backward_seconds", "backward", as_seconds},
    {"share", "of the step", as_percent},
    {"gflops", "GFLOP/s", as_rate},
    {"gbytes_per_second", "GB/s", as_rate},
    {"floor_seconds", "floor", as_seconds},
    {"floor_share", "floor / time", as_percent},
};

// The time of a step by operation, with the optimizer's as a row of its own. GFLOP/s: of an operation that
// multiplies matrices, counted as the step's. The floor is Profile's, null where a rate is not known.
Json profile_rows(const Profile& profile) {
  const auto steps = static_cast<double>(profile.steps());
  const double all = profile.forward() + profile.backward() + profile.rest();
  Json rows = Json::array();
  for (const Profile::Entry& entry : profile.entries()) {
    const double seconds = entry.forward + entry.backward, flops = 6 * static_cast<double>(entry.macs);
    rows.push_back({{"op", entry.op},
                    {"forward_seconds", entry.forward / steps},
                    {"backward_seconds", entry.backward / steps},
                    {"share", seconds / all},
                    {"gflops", flops > 0 ? Json(1e-9 * flops / seconds) : Json()},
                    {"gbytes_per_second", 1e-9 * static_cast<double>(entry.bytes) / seconds},
                    {"floor_seconds", entry.floor > 0 ? Json(entry.floor / steps) : Json()},
                    {"floor_share", entry.floor > 0 ? Json(entry.floor / seconds) : Json()}});
  }
  rows.push_back({{"op", "(optimizer)"},
                  {"forward_seconds", nullptr},
                  {"backward_seconds", nullptr},
                  {"share", profile.rest() / all},
                  {"gflops", nullptr},
                  {"gbytes_per_second", nullptr},
                  {"floor_seconds", nullptr},
                  {"floor_share", nullptr}});
  return rows;
}

// The multiply-accumulates of a forward pass of a batch are counted in the profiled steps, which leave out
// what stochastic depth drops. A GPU that profiled none computes all of the model's.
double macs_of_batch(const Options& options, const Json& config, const Profile& profile) {
  if (profile.steps() == 0)
    return static_cast<double>(cost_of(config).macs) * static_cast<double>(options.batch);
  double macs = 0;
  for (const Profile::Entry& entry : profile.entries()) macs += static_cast<double>(entry.macs);
  return macs / static_cast<double>(profile.steps());
}

// Forward and backward are 2 and 4 operations for each multiply-accumulate of a forward pass.
Json describe(const Options& options, const std::string& model, const Json& config, int64_t micro_batch,
              const Measured& measured, const Profile& profile) {
  const auto batch = static_cast<double>(options.batch), steps = static_cast<double>(profile.steps());
  const double gflops = 6e-9 * macs_of_batch(options, config, profile) / measured.seconds;
  const auto per_step = [&](double seconds) { return steps > 0 ? Json(seconds / steps) : Json(); };
  Json row{{"model", model},
           {"device", name(options.device)},
           {"batch", options.batch},
           {"micro_batch", micro_batch},
           {"dtype", name(options.dtype)},
           {"precision", name(options.precision)},
           {"threads", threads()},
           {"images_per_second", batch / measured.seconds},
           {"step_seconds", measured.seconds},
           {"best_step_seconds", measured.best_seconds},
           {"forward_seconds", per_step(profile.forward())},
           {"backward_seconds", per_step(profile.backward())},
           {"optimizer_seconds", per_step(profile.rest())},
           {"gflops", gflops},
           {"gemm_peak_gflops", measured.gemm_peak_gflops},
           {"share_of_peak", gflops / measured.gemm_peak_gflops},
           {"peak_memory_bytes", peak_memory_bytes(options.device)}};
  if (options.profile) row["operations"] = profile_rows(profile);
  return row;
}

// Steps on one batch, as the trainer's: on a GPU one begins before the one before it has ended.
class BenchedSteps {
 public:
  // Only a classifier's labels are smoothed.
  BenchedSteps(const Options& options, const std::string& name, Task task, Model& model, Optimizer& optimizer,
               bool graph)
      : name_(name),
        lr_(options.train.optimizer.lr),
        step_(model, optimizer,
              {.micro_batch = options.train.micro_batch,
               .clip = options.train.clip,
               .smoothing = task == Task::classify ? options.train.smoothing : 0,
               .graph = graph,
               .precision = options.precision,
               .batch_norm = options.train.micro_batch.value_or(0) > 0 && has_batch_norm(model)
                                 ? BatchNormStatistics::micro_batch
                                 : BatchNormStatistics::batch}),
        batch_{options.images(model), options.labels(model)},
        pass_{.training = true, .random = Random(options.seed), .answer_only = true} {
    batch_.host_labels = batch_.targets.to(Device::cpu);
  }

  void step() {
    step_.start(batch_, lr_, pass_);
    ++under_way_;
    finish(step_.most_under_way() - 1);
  }

  int64_t micro_batch() const { return step_.micro_batch(); }

  // Until no more than `left` steps are under way.
  void finish(int left = 0) {
    for (; under_way_ > left; --under_way_)
      if (const StepResult result = step_.finish(); !result.note.empty())
        fmt::print(stderr, "{}: {}\n", name_, result.note);
  }

 private:
  std::string name_;
  double lr_;
  TrainStep step_;
  StepBatch batch_;
  Pass pass_;
  int under_way_ = 0;
};

// The numbers of the model `name`, of this config.
Json measure_training(const Options& options, const std::string& name, const Json& config) {
  const bool on_cpu = options.device == Device::cpu;
  const double memory_rate = on_cpu && options.profile ? measure_memory_rate() : 0;
  reset_peak_memory();
  Model model = options.build_model(config);
  const auto optimizer = make_optimizer(options.train.optimizer, model.parameters);
  Measured measured{};
  int64_t micro_batch = 0;
  {
    BenchedSteps steps(options, name, task_of(config), model, *optimizer, options.graph);
    measured = measure(options, [&] { steps.step(); });
    steps.finish();
    micro_batch = std::min(options.batch, steps.micro_batch());
  }
  Profile profile(options.device, {1e9 * measured.gemm_peak_gflops, memory_rate});
  if (on_cpu || options.profile) {
    BenchedSteps launched(options, name, task_of(config), model, *optimizer, false);
    if (!on_cpu) {  // the first allocates
      launched.step();
      launched.finish();
    }
    for (int64_t i = 0; i < std::min<int64_t>(options.steps, 5); ++i) {
      profile.start();
      launched.step();
      profile.stop();
      launched.finish();
    }
  }
  Json row = describe(options, name, config, micro_batch, measured, profile);
  if (memory_rate > 0) row["memory_gbytes_per_second"] = 1e-9 * memory_rate;
  return row;
}

// A row a preset; one that cannot be had at this size has a "reason" in it.
ExitCode bench_presets(const Options& options, const std::vector<std::string>& names) {
  Json rows = Json::array();
  std::string reasons;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    try {
      rows.push_back(measure_training(options, name, options.source.config_of_preset(name)));
      fmt::print(stderr, "{}/{} {}: {} images/s\n", i + 1, names.size(), name,
                 as_rate(rows.back()["images_per_second"]));
    } catch (const Error& error) {
      rows.push_back({{"model", name}, {"reason", error.what()}});
      reasons += fmt::format("\n{}: {}", name, error.what());
      fmt::print(stderr, "{}/{} {}: left out\n", i + 1, names.size(), name);
    }
  }
  print_rows(short_columns, rows, options.json);
  if (!options.json && !reasons.empty()) fmt::print("{}\n", reasons);
  return ExitCode::done;
}

ExitCode bench_train(Options options) {
  if (options.precision == Precision::bf16) options.products = DType::bf16;
  const std::vector<std::string> known = preset_names();
  for (const std::string& name : options.presets)
    check(std::find(known.begin(), known.end(), name) != known.end(), "bench: unknown preset '", name, "'",
          did_you_mean(name, known));
  if (options.all || !options.presets.empty())
    return bench_presets(options, options.all ? known : options.presets);
  const Json row = measure_training(options, options.source.name(), options.source.config());
  if (options.json) {
    print_json(row);
    return ExitCode::done;
  }
  print_record(columns, row);
  if (options.profile) {
    fmt::print("\n");
    print_table(profile_columns, row["operations"]);
    if (row.contains("memory_gbytes_per_second"))
      fmt::print(
          "\nThe floor is an operation's products at the GEMM peak, or its bytes at the {} GB/s of the\n"
          "memory, whichever takes longer. What the caches hold is faster, and minimal filtering needs\n"
          "fewer products: either can take less.\n",
          as_rate(row["memory_gbytes_per_second"]));
  }
  return ExitCode::done;
}

}  // namespace

void add_bench_train(Command& bench) {
  Command& command = add_command(
      bench, "train", "Training steps on random images: rate, share of the GEMM peak, memory.",
      {"tessera bench train --model sl-vit --image-size 32 --classes 10 --batch 128 --json",
       "tessera bench train --model vit --threads 1 --profile",
       "tessera bench train --all --image-size 64 --classes 200 --batch 16 --steps 3 --warmup 1 --json"},
      "A step is that of tessera train: forward, backward and AdamW. It counts 6 operations for each\n"
      "multiply-accumulate of a forward pass that runs, also where convolutions take fewer by minimal\n"
      "filtering; the GEMM peak is measured in the same run and threads.");
  const auto options = std::make_shared<Options>();
  Option* model = options->add_to(command, {DType::f32, DType::f64});
  Option* presets =
      command.add_option("--presets", options->presets, "These presets, a row each")->delimiter(',');
  presets->type_name("NAME,...")->excludes(model);
  command.add_flag("--all", options->all, "Every preset, a row each")->excludes(model)->excludes(presets);
  command
      .add_option(
          "--micro-batch", options->train.micro_batch,
          "Images that go through at once, and of which batch norms take the statistics; 0: the whole "
          "batch; otherwise 64 on a CPU, the whole batch on a GPU or with batch norms")
      ->check(non_negative())
      ->type_name("N");
  add_precision(command, options->precision);
  command.add_flag("--profile", options->profile,
                   "Say where the time goes, operation by operation; on a GPU, launched one by one");
  on_run(command, [options] { return bench_train(*options); });
}

}  // namespace tessera
