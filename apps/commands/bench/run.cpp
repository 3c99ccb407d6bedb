#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/train_options.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/table.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"

namespace tessera {

namespace {

struct Options : TrainOptions {
  int64_t warmup = 5;
  double seconds = 10;
};

constexpr Column columns[] = {
    {"model", "model"},
    {"dataset", "data set"},
    {"image_shape", "image", as_shape},
    {"device", "device"},
    {"precision", "precision"},
    {"on_device", "set on device"},
    {"batch", "batch", as_integer},
    {"threads", "threads", as_integer},
    {"steps", "steps", as_integer},
    {"images_per_second", "images/s", as_rate},
    {"step_seconds", "a step", as_seconds},
    {"wait_share", "waiting for data", as_percent},
    {"peak_memory_bytes", "peak memory", as_bytes},
};

ExitCode bench_run(const Options& options) {
  check(!options.automatic_batch(), "bench run: --batch auto is for tessera train; give a number");
  TrainConfig config = train_config_of(options);
  check_dataset_is_named(config);
  const Dataset dataset = open_data(config.data, task_of(config.model));
  const std::string model = model_name(config);
  config.model = resolve_model(config.model, dataset);
  const Device device = options.computing.device;
  Trainer trainer(config, dataset, options.computing);
  trainer.take_steps([left = options.warmup]() mutable { return left-- > 0; });
  reset_peak(device);
  const double waited_before = trainer.wait_seconds();
  const Stopwatch watch;
  const int64_t steps = trainer.take_steps([&] { return watch.seconds() < options.seconds; });
  const double seconds = watch.seconds();
  const Json row{
      {"model", model},
      {"dataset", dataset.name},
      {"image_shape", std::vector<int64_t>(dataset.image_shape.begin(), dataset.image_shape.end())},
      {"device", name(device)},
      {"precision", name(options.computing.precision)},
      {"on_device", trainer.data_on_device()},
      {"batch", config.batch},
      {"threads", threads()},
      {"steps", steps},
      {"seconds", seconds},
      {"images_per_second", static_cast<double>(steps * config.batch) / seconds},
      {"step_seconds", seconds / static_cast<double>(steps)},
      {"wait_share", (trainer.wait_seconds() - waited_before) / seconds},
      {"peak_memory_bytes", peak_memory_bytes(device)}};
  print_record(columns, row, options.json);
  return ExitCode::done;
}

}  // namespace

void add_bench_run(Command& bench) {
  Command& command = add_command(
      bench, "run", "Steps as tessera train takes them, end to end: data, augmentation, model, optimizer.",
      {"tessera bench run --recipe demo",
       "tessera bench run --recipe sl-vit-cifar10 --data cifar-10-batches-bin --seconds 60",
       "tessera bench run --recipe sl-vit-tiny-imagenet --data DIR --device cuda --precision bf16 --json"},
      "Steps are counted until the time is over. What a run does between its epochs is left out: it is\n"
      "neither judged nor saved. tessera bench train times the step alone, tessera bench loader the data.");
  const auto options = std::make_shared<Options>();
  add_config_options(command, *options);
  command.add_option("--seconds", options->seconds, "How long to train")
      ->check(positive())
      ->capture_default_str()
      ->type_name("S");
  command.add_option("--warmup", options->warmup, "Steps before the time begins")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("N");
  add_computing_options(command, options->computing);
  add_json(command, options->json);
  on_run(command, [options] { return bench_run(*options); });
}

}  // namespace tessera
