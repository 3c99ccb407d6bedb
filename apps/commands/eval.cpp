// tessera eval: how good a checkpoint is, class by class.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/data_source.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/options/weights_source.h"
#include "apps/ranks/alike.h"
#include "apps/ranks/run_on_ranks.h"
#include "apps/ranks/shared_data.h"
#include "apps/reporting/class_table.h"
#include "apps/reporting/evaluation_files.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"
#include "apps/training/precision.h"
#include "apps/training/validation.h"
#include "apps/training/whole_pictures.h"
#include "data/registry.h"
#include "engine/core/frozen_weights.h"
#include "engine/core/printable.h"
#include "engine/core/replay.h"
#include "engine/io/file.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

namespace {

struct Options {
  WeightsSource weights;
  std::string checkpoint, dataset, data, split = "validation", csv, images_csv;
  int64_t batch = 128;
  bool json = false, sliding = false, flip = false;
  int64_t stride = 0, short_side = 0;
  std::vector<float> scales{1};
  Device device = Device::cpu;
  Precision precision = Precision::f32;
};

constexpr int64_t widest_matrix = 40;  // classes; a larger matrix does not fit a screen

// Weights without a run know only the number of classes, which must match; the data set then names them.
void check_classes(const Checkpoint& checkpoint, const Dataset& dataset) {
  const auto& known = checkpoint.data.class_names;
  const std::string& trained_on = checkpoint.data.source.name;
  const std::string path = checkpoint.path.string();
  if (trained_on.empty())
    check(std::ssize(known) == dataset.classes(), "eval: ", path, " tells ", known.size(), " classes apart, ",
          dataset.name, " has ", dataset.classes());
  else
    check(dataset.class_names == known, "eval: ", path, " tells ", known.size(), " classes of ", trained_on,
          " apart (", known.front(), " ...), ", dataset.name, " has ", dataset.classes(), " (",
          dataset.class_names.front(), " ...); they must be the same");
}

Dataset open_for(const Checkpoint& checkpoint, const Options& options) {
  DataConfig source = checkpoint.data.source;
  if (!options.dataset.empty() && options.dataset != source.name) {
    source = DataConfig();
    source.name = options.dataset;
  }
  check(!source.name.empty(), "eval: ", checkpoint.path.string(),
        " says nothing of its data; give --dataset NAME, and --data DIR where it lies in files");
  check_folder(source.name, options.data);
  source.dir = options.data.empty() && source.name == checkpoint.data.source.name ? data_folder_of(checkpoint)
                                                                                  : options.data;
  source.image_size = checkpoint.data.image_size;
  Dataset dataset = open_data(source, task_of(checkpoint.model.config));
  check_classes(checkpoint, dataset);
  return dataset;
}

// Prints the confusion matrix: labels down, predictions across, both by class number.
void print_matrix(const Evaluation& e) {
  const int64_t most = *std::max_element(e.confusion.begin(), e.confusion.end());
  const int width =
      static_cast<int>(std::max(std::to_string(most).size(), std::to_string(e.classes - 1).size())) + 1;
  fmt::print("\nConfusion (label down, prediction across)\n{:>4}", "");
  for (int64_t k = 0; k < e.classes; ++k) fmt::print("{:>{}}", k, width);
  for (int64_t k = 0; k < e.classes; ++k) {
    fmt::print("\n{:>4}", k);
    for (int64_t j = 0; j < e.classes; ++j)
      fmt::print("{:>{}}", e.at(k, j) > 0 ? std::to_string(e.at(k, j)) : ".", width);
  }
  fmt::print("\n");
}

void print_confused(const Evaluation& e, const std::vector<std::string>& names) {
  fmt::print("\nMost often confused ({} classes; --json has the whole matrix)\n", e.classes);
  for (const auto& [images, label, predicted] : most_confused(e, 10))
    fmt::print("{:>6}  {} mistaken for {}\n", images, printable(names[static_cast<size_t>(label)], false),
               printable(names[static_cast<size_t>(predicted)], false));
}

void print_report(const Json& result, const Evaluation& e, const std::vector<std::string>& names) {
  fmt::print("{}  {} {}, {} images\n", printable(result["checkpoint"].get<std::string>(), false),
             result["dataset"].get<std::string>(), result["split"].get<std::string>(), e.images);
  if (e.task != Task::classify) fmt::print("{}\n", e.text());
  if (e.task == Task::diffuse) return;
  if (e.task == Task::segment) {
    const Column columns[] = {{"class", "class", as_integer}, {"name", "name"}, {"iou", "IoU", as_percent}};
    fmt::print("\n");
    return print_table(columns, result["classes"]);
  }
  fmt::print("top-1 {:.2f} %  top-5 {:.2f} %  loss {:.4f}\n\n", 100 * e.top1(), 100 * e.top5(), e.loss());
  const Column columns[] = {{"class", "class", as_integer},   {"name", "name"},
                            {"images", "images", as_integer}, {"predicted", "predicted", as_integer},
                            {"recall", "recall", as_percent}, {"precision", "precision", as_percent}};
  print_table(columns, result["classes"]);
  if (e.classes <= widest_matrix)
    print_matrix(e);
  else
    print_confused(e, names);
}

Json result_of(const Checkpoint& checkpoint, const Dataset& dataset, const Options& options,
               const Evaluation& e) {
  Json result{{"checkpoint", checkpoint.path.string()},
              {"dataset", dataset.name},
              {"split", options.split},
              {"images", e.images}};
  result.update(e.json());
  if (e.task == Task::classify)
    result.update({{"classes", class_rows(e, dataset.class_names)}, {"confusion", confusion_rows(e)}});
  if (e.task == Task::segment) result["classes"] = iou_rows(e, dataset.class_names);
  return result;
}

// A segmenter's result on pictures of their own size. There is no loss: windows and scales are averaged.
Json sliding_result(const Checkpoint& checkpoint, const Model& model, const Dataset& dataset,
                    const Options& options) {
  const DType type = trainable(model.parameters).front().second.dtype();
  const FrozenWeights frozen(model.parameters.state());
  const CropSegmenter segmenter{
      [&](const Tensor& images) {
        Pass pass;
        return model.logits(images.to(options.device).to(type), pass).to(Device::cpu).to(DType::f32);
      },
      model.image_size()};
  const WholePictureScores scores =
      judge_whole_pictures(segmenter, options.split == "train" ? *dataset.train : *dataset.validation,
                           checkpoint.data.normalisation,
                           {.short_side = options.short_side,
                            .stride = options.stride,
                            .scales = std::vector<double>(options.scales.begin(), options.scales.end()),
                            .flips = options.flip});
  Evaluation e;
  e.task = Task::segment;
  e.images = scores.images;
  e.pixels = scores.pixels;
  Json result = result_of(checkpoint, dataset, options, e);
  result.erase("loss");
  result["mean_class_accuracy"] = scores.mean_accuracy;
  return result;
}

void print_sliding(const Json& result) {
  fmt::print("{}  {} {}, {} images of their own size\n",
             printable(result["checkpoint"].get<std::string>(), false), result["dataset"].get<std::string>(),
             result["split"].get<std::string>(), result["images"].get<int64_t>());
  fmt::print("mean IoU {:.2f} %  pixels {:.2f} %  mean class accuracy {:.2f} %\n\n",
             100 * result["mean_iou"].get<double>(), 100 * result["pixel_accuracy"].get<double>(),
             100 * result["mean_class_accuracy"].get<double>());
  const Column columns[] = {{"class", "class", as_integer}, {"name", "name"}, {"iou", "IoU", as_percent}};
  print_table(columns, result["classes"]);
}

void write_result(const Json& result, const Options& options) {
  if (!options.csv.empty()) write_file_atomically(options.csv, class_csv(result["classes"]));
  if (options.json) print_json(result);
}

ExitCode run(const Options& options, Ranks* ranks) {
  check(options.weights.given() == options.checkpoint.empty(),
        "eval: what of? Give a checkpoint, a run folder, or --weights FILE with --model NAME");
  expect_output("eval: --csv", options.csv);
  expect_output("eval: --images-csv", options.images_csv);
  const Checkpoint checkpoint = options.weights.given() ? options.weights.read(options.device)
                                                        : read_checkpoint(options.checkpoint, options.device);
  const Task task = task_of(checkpoint.model.config);
  check(task != Task::diffuse || (options.csv.empty() && options.images_csv.empty()),
        "eval: --csv and --images-csv are about classes, which a diffusion model does not tell apart");
  check(!options.sliding || task == Task::segment,
        "eval: --sliding is for segmenters; this model has a class for each picture, not for each pixel");
  check(!options.sliding || !ranks, "eval: --sliding runs in one process, not under mpirun");
  Dataset dataset = open_for(checkpoint, options);
  if (ranks) {
    expect_alike(*ranks, {.device = options.device, .precision = options.precision});
    expect_alike(*ranks, "checkpoint", digest_of(checkpoint.model));
    expect_alike(*ranks, "data set", digest_of(dataset));
    share_data(*ranks, dataset);
  }
  EvaluateOptions evaluated;
  evaluated.device = options.device;
  evaluated.ranks = ranks;
  const auto split = options.split == "train" ? dataset.train : dataset.validation;
  const auto loader = evaluation_loader(split, Pipeline(checkpoint.data.empty_dataset()), options.batch,
                                        {.device = options.device, .resident = false}, evaluated);
  std::vector<Judgement> judgements;
  allow_tf32(options.precision == Precision::tf32);
  const bool narrow = evaluation_dtype(task, options.precision) == DType::bf16;
  const Model model = narrow ? copy_as(checkpoint.model, DType::bf16) : checkpoint.model;
  if (options.sliding) {
    const Json result = sliding_result(checkpoint, model, dataset, options);
    write_result(result, options);
    if (!options.json) print_sliding(result);
    return ExitCode::done;
  }
  if (!options.images_csv.empty()) evaluated.judgements = &judgements;
  const Evaluation e = *evaluate(model, *loader, evaluated);
  check(std::isfinite(e.loss()), "eval: ", checkpoint.path.string(), ": the loss on ", options.split, " is ",
        e.loss(), ", as outputs of the model are not finite; no score of it means anything");
  if (ranks && !ranks->is_first()) return ExitCode::done;
  const Json result = result_of(checkpoint, dataset, options, e);
  if (!options.images_csv.empty())
    write_file_atomically(options.images_csv, judgement_csv(judgements, *split, task, dataset.class_names));
  write_result(result, options);
  if (!options.json) print_report(result, e, dataset.class_names);
  return ExitCode::done;
}

}  // namespace

namespace {

void add_sliding(Command& command, Options& options) {
  Option* sliding = command.add_flag("--sliding", options.sliding,
                                     "A segmenter: judge whole pictures of their own size, window by window");
  sliding->excludes(command
                        .add_option("--images-csv", options.images_csv,
                                    "Write what was made of each picture into this file: label, "
                                    "prediction, confidence, loss")
                        ->type_name("FILE"));
  command
      .add_option("--stride", options.stride,
                  "Pixels from window to window, a window's side at most; 0: two thirds of it")
      ->check(non_negative())
      ->type_name("N")
      ->needs(sliding);
  command
      .add_option("--short-side", options.short_side, "Pixels of the shorter side at scale 1; 0: a window's")
      ->check(non_negative())
      ->type_name("N")
      ->needs(sliding);
  command.add_option("--scales", options.scales, "Sizes whose answers are averaged")
      ->delimiter(',')
      ->check(positive())
      ->type_name("S,...")
      ->needs(sliding);
  command.add_flag("--flip", options.flip, "Average with the mirror image's answers")->needs(sliding);
}

}  // namespace

void add_eval(Command& app) {
  Command& command =
      add_command(app, "eval", "Top-1, top-5, loss, classes and confusion of a checkpoint.",
                  {"tessera eval runs/demo", "tessera eval runs/cifar/best.safetensors --data DIR --json",
                   "tessera eval --weights vit.safetensors --model vit.json --dataset imagenet --data DIR",
                   "tessera eval runs/cifar --csv classes.csv --images-csv pictures.csv",
                   "tessera eval runs/ade --data DIR --sliding --scales 0.5,0.75,1,1.25,1.5,1.75 --flip",
                   "mpirun -n 4 tessera eval runs/cifar --data DIR"});
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)");
  command.add_option("--dataset", options->dataset, "Data set, if not the one it was trained on")
      ->type_name("NAME");
  command.add_option("--data", options->data, "The data set's folder, if it is not that of the run")
      ->type_name("DIR");
  command.add_option("--split", options->split, "validation or train")
      ->check(one_of({"validation", "train"}))
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("--batch", options->batch, "Images a batch")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  options->weights.add_to(command);
  add_sliding(command, *options);
  command.add_option("--csv", options->csv, "Write the table of the classes into this file too")
      ->type_name("FILE");
  add_device(command, options->device);
  add_precision(command, options->precision);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options, &command] {
    return run_on_ranks(command.given("--threads"), [&](Ranks* ranks) { return run(*options, ranks); });
  });
}

}  // namespace tessera
