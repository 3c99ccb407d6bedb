// tessera eval: how good a checkpoint is, class by class.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/weights_source.h"
#include "apps/ranks/alike.h"
#include "apps/ranks/run_on_ranks.h"
#include "apps/ranks/shared_data.h"
#include "apps/reporting/class_table.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/csv.h"
#include "apps/training/evaluation.h"
#include "apps/training/precision.h"
#include "apps/training/validation.h"
#include "engine/core/printable.h"
#include "engine/core/replay.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

struct Options {
  WeightsSource weights;
  std::string checkpoint, dataset, data, split = "validation", csv, images_csv;
  int64_t batch = 128;
  bool json = false;
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

// The folder of the data that the run beside the checkpoint was trained on; empty where there is no such run.
std::string folder_of(const Checkpoint& checkpoint) {
  const std::filesystem::path config = checkpoint.path.parent_path() / "config.json";
  if (!std::filesystem::is_regular_file(config)) return "";
  const Json document = read_json(config);
  const Json data = document.is_object() ? document.value("data", Json()) : Json();
  const Json dir = data.is_object() ? data.value("dir", Json()) : Json();
  return dir.is_string() ? dir.get<std::string>() : "";
}

Dataset open_for(const Checkpoint& checkpoint, const Options& options) {
  DataConfig source = checkpoint.data.source;
  if (!options.dataset.empty() && options.dataset != source.name) {
    source = DataConfig();
    source.name = options.dataset;
  }
  check(!source.name.empty(), "eval: ", checkpoint.path.string(),
        " says nothing of its data; give --dataset NAME, and --data DIR where it lies in files");
  source.dir = options.data.empty() && source.name == checkpoint.data.source.name ? folder_of(checkpoint)
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
    fmt::print("{:>6}  {} mistaken for {}\n", images, printable(names[static_cast<size_t>(label)]),
               printable(names[static_cast<size_t>(predicted)]));
}

void print_report(const Json& result, const Evaluation& e, const std::vector<std::string>& names) {
  fmt::print("{}  {} {}, {} images\n", printable(result["checkpoint"].get<std::string>()),
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

// The table of the classes as CSV, with full numbers; a field without a value is empty.
std::string class_csv(const Json& rows) {
  std::vector<std::string> header;
  for (const auto& [key, value] : rows.front().items()) header.push_back(key);
  std::string text = csv_line(header);
  for (const Json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& key : header) fields.push_back(row[key].is_null() ? "" : as_text(row[key]));
    text += csv_line(fields);
  }
  return text;
}

// One CSV line for each picture, in the order of the split.
std::string judgement_csv(const std::vector<Judgement>& judgements, const Split& split, Task task,
                          const std::vector<std::string>& names) {
  const auto name = [&](int64_t k) { return names[static_cast<size_t>(k)]; };
  const bool segments = task == Task::segment;
  std::string text =
      segments ? "picture,source,right_pixels\n" : "picture,source,label,predicted,right,confidence,loss\n";
  for (const Judgement& j : judgements) {
    std::vector<std::string> fields{std::to_string(j.picture), split.source(j.picture)};
    if (!segments)
      for (const std::string& field : {name(j.label), name(j.predicted)}) fields.push_back(field);
    fields.push_back(fmt::format("{}", j.right));
    if (!segments)
      for (const double number : {j.confidence, j.loss}) fields.push_back(fmt::format("{}", number));
    text += csv_line(fields);
  }
  return text;
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

ExitCode run(const Options& options, Ranks* ranks) {
  check(options.weights.given() == options.checkpoint.empty(),
        "eval: what of? Give a checkpoint, a run folder, or --weights FILE with --model NAME");
  const Checkpoint checkpoint = options.weights.given() ? options.weights.read(options.device)
                                                        : read_checkpoint(options.checkpoint, options.device);
  const Task task = task_of(checkpoint.model.config);
  check(task != Task::diffuse || (options.csv.empty() && options.images_csv.empty()),
        "eval: --csv and --images-csv are about classes, which a diffusion model does not tell apart");
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
  if (!options.images_csv.empty()) evaluated.judgements = &judgements;
  const Evaluation e = *evaluate(model, *loader, evaluated);
  check(std::isfinite(e.loss()), "eval: ", checkpoint.path.string(), ": the loss on ", options.split, " is ",
        e.loss(), ", as outputs of the model are not finite; no score of it means anything");
  if (ranks && !ranks->is_first()) return ExitCode::done;
  const Json result = result_of(checkpoint, dataset, options, e);
  if (!options.csv.empty()) write_file_atomically(options.csv, class_csv(result["classes"]));
  if (!options.images_csv.empty())
    write_file_atomically(options.images_csv, judgement_csv(judgements, *split, task, dataset.class_names));
  if (options.json)
    print_json(result);
  else
    print_report(result, e, dataset.class_names);
  return ExitCode::done;
}

}  // namespace

void add_eval(Command& app) {
  Command& command =
      add_command(app, "eval", "Top-1, top-5, loss, classes and confusion of a checkpoint.",
                  {"tessera eval runs/demo", "tessera eval runs/cifar/best.safetensors --data DIR --json",
                   "tessera eval --weights vit.safetensors --model vit.json --dataset imagenet --data DIR",
                   "tessera eval runs/cifar --csv classes.csv --images-csv pictures.csv",
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
  command.add_option("--csv", options->csv, "Write the table of the classes into this file too")
      ->type_name("FILE");
  command
      .add_option("--images-csv", options->images_csv,
                  "Write what was made of each picture into this file: label, prediction, confidence, loss")
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
