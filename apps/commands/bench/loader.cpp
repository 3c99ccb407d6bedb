#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/table.h"
#include "apps/training/config.h"
#include "apps/training/recipe.h"
#include "data/loader.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

struct Options {
  DataConfig data;
  std::string recipe;
  int64_t batch = 128;
  Device device = Device::cpu;
  DType dtype = DType::f32;
  bool streamed = false;
  double seconds = 3;
  bool json = false;
};

constexpr Column columns[] = {
    {"dataset", "data set"},
    {"image_shape", "image", as_shape},
    {"device", "device"},
    {"on_device", "set on device"},
    {"batch", "batch", as_integer},
    {"threads", "threads", as_integer},
    {"images", "images", as_integer},
    {"images_per_second", "images/s", as_rate},
    {"images_per_second_per_core", "a core", as_rate},
    {"peak_memory_bytes", "peak memory", as_bytes},
};

// Reads epoch after epoch, augmented as for training, until the time is over. Returns images and seconds.
std::pair<int64_t, double> read_for(Loader& loader, double seconds) {
  loader.start(0);
  loader.next();  // the first batch waits for workers to wake
  int64_t images = 0, epoch = 0;
  Tensor labels;
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
    if (const Batch* batch = loader.next()) {
      labels = batch->labels;
      images += labels.dim(0);
    } else {
      loader.start(++epoch);
    }
  }
  if (labels.defined()) labels.integers();  // a GPU has done all of it
  return {images, watch.seconds()};
}

// The recipe's augmentation, or that of the papers' whole regime.
AugmentOptions augmentation(const Options& options) {
  const std::string recipe = options.recipe.empty() ? "sl-vit-cifar10" : options.recipe;
  return read_train_config(read_recipe(recipe), "recipe " + recipe).augment;
}

ExitCode bench_loader(const Options& options) {
  check(options.device != Device::cpu || options.dtype == DType::f32,
        "bench: batches on the CPU are f32; --dtype bf16 is for --device cuda");
  const bool latents = holds_latents(options.data.name);
  check(!latents || options.device == Device::cpu, "bench: latents are read on the CPU; leave --device out");
  const AugmentOptions augment = latents ? no_augmentation : augmentation(options);
  check_folder(options.data.name, options.data.dir);
  const Dataset dataset = open_data(options.data, latents ? Task::diffuse : Task::classify);
  LoaderOptions how;
  how.sampler.batch = std::min(options.batch, dataset.train->size());
  how.seed = static_cast<uint64_t>(options.data.seed);
  how.mix = augment.mix;
  how.delivery = {.device = options.device,
                  .dtype = options.dtype,
                  .resident = !options.streamed,
                  .classes = dataset.classes()};
  Loader loader(dataset.train, Pipeline::training(dataset, augment), how);
  const auto [images, seconds] = read_for(loader, options.seconds);
  const double rate = static_cast<double>(images) / seconds;
  const Json row{
      {"dataset", dataset.name},
      {"image_shape", std::vector<int64_t>(dataset.image_shape.begin(), dataset.image_shape.end())},
      {"device", name(options.device)},
      {"dtype", name(options.dtype)},
      {"on_device", loader.resident()},
      {"batch", how.sampler.batch},
      {"threads", threads()},
      {"images", images},
      {"seconds", seconds},
      {"images_per_second", rate},
      {"images_per_second_per_core", rate / threads()},
      {"peak_memory_bytes", peak_memory_bytes(options.device)}};
  print_record(columns, row, options.json);
  return ExitCode::done;
}

}  // namespace

void add_bench_loader(Command& bench) {
  Command& command = add_command(
      bench, "loader", "Decode, augment and pack batches, with no model to feed.",
      {"tessera bench loader --dataset shapes",
       "tessera bench loader --dataset cifar10 --data cifar-10-batches-bin --threads 1",
       "tessera bench loader --dataset tiny-imagenet --data DIR --batch 1024 --device cuda --dtype bf16"},
      "Pictures are augmented as by the paper's whole regime (the recipe sl-vit-cifar10): flip, crop,\n"
      "AutoAugment, random erasing, Mixup and CutMix; --recipe takes another one's augmentation.");
  const auto options = std::make_shared<Options>();
  options->data.name = "shapes";
  command.add_option("--dataset", options->data.name, "As in tessera data info")
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("--data", options->data.dir, "The folder that the data set's archive unpacks")
      ->type_name("DIR");
  command.add_option("--image-size", options->data.image_size, "Pixels a side; default: the data set's own")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--recipe", options->recipe, "Augment as this recipe does, a built-in one or a JSON file")
      ->type_name("NAME-or-FILE");
  command.add_option("--batch", options->batch, "Images a batch")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--seconds", options->seconds, "How long to read")
      ->check(positive())
      ->capture_default_str()
      ->type_name("S");
  add_threads(command);
  add_device(command, options->device);
  add_dtype(command, options->dtype, {DType::f32, DType::bf16});
  command.add_flag("--streamed", options->streamed,
                   "On a GPU: bring each batch's bytes, though the set fits in its memory");
  command.add_option("--seed", options->data.seed, "Of order and augmentation")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("N");
  add_json(command, options->json);
  on_run(command, [options] { return bench_loader(*options); });
}

}  // namespace tessera
