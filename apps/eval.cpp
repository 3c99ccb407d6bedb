// tessera eval: how good a checkpoint is, class by class.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/checkpoint.h"
#include "apps/evaluate.h"
#include "apps/options.h"
#include "apps/report.h"
#include "apps/subcommands.h"
#include "apps/weights_source.h"

namespace tessera {

namespace {

struct Options {
  WeightsSource weights;
  std::string checkpoint, dataset, data, split = "validation";
  int64_t batch = 128;
  bool json = false;
  Device device = Device::cpu;
};

constexpr int64_t widest_matrix = 40;  // classes; more do not fit a screen

// Weights without a run know the number of classes alone; the data set then names them.
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
  source.dir = options.data;
  source.image_size = checkpoint.data.image_size;
  Dataset dataset = open_data(source, task_of(checkpoint.model.config));
  check_classes(checkpoint, dataset);
  return dataset;
}

// Recall is the share of a class's pictures that are found, precision that of its predictions that are right.
Json class_rows(const Evaluation& e, const std::vector<std::string>& names) {
  Json rows = Json::array();
  for (int64_t k = 0; k < e.classes; ++k) {
    int64_t images = 0, predicted = 0;
    for (int64_t j = 0; j < e.classes; ++j) {
      images += e.at(k, j);
      predicted += e.at(j, k);
    }
    const auto ratio = [&](int64_t of) {
      return of > 0 ? Json(static_cast<double>(e.at(k, k)) / static_cast<double>(of)) : Json();
    };
    rows.push_back({{"class", k},
                    {"name", names[static_cast<size_t>(k)]},
                    {"images", images},
                    {"predicted", predicted},
                    {"recall", ratio(images)},
                    {"precision", ratio(predicted)}});
  }
  return rows;
}

Json matrix_of(const Evaluation& e) {
  Json rows = Json::array();
  for (int64_t k = 0; k < e.classes; ++k)
    rows.push_back(
        std::vector<int64_t>(e.confusion.begin() + k * e.classes, e.confusion.begin() + (k + 1) * e.classes));
  return rows;
}

// Labels down, predictions across, both by class number.
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

// The pairs of classes that are most often taken for one another.
void print_confused(const Evaluation& e, const std::vector<std::string>& names) {
  struct Pair {
    int64_t images, label, predicted;
  };
  std::vector<Pair> pairs;
  for (int64_t k = 0; k < e.classes; ++k)
    for (int64_t j = 0; j < e.classes; ++j)
      if (j != k && e.at(k, j) > 0) pairs.push_back({e.at(k, j), k, j});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.images > b.images; });
  pairs.resize(std::min<size_t>(pairs.size(), 10));
  fmt::print("\nMost often confused ({} classes; --json has the whole matrix)\n", e.classes);
  for (const auto& [images, label, predicted] : pairs)
    fmt::print("{:>6}  {} taken for {}\n", images, names[static_cast<size_t>(label)],
               names[static_cast<size_t>(predicted)]);
}

// A segmenter's classes with their IoU; null for one that no pixel has or is given.
Json iou_rows(const Evaluation& e, const std::vector<std::string>& names) {
  Json rows = Json::array();
  const std::vector<double> iou = e.pixels->scores().iou;
  for (size_t k = 0; k < iou.size(); ++k)
    rows.push_back({{"class", k}, {"name", names[k]}, {"iou", std::isnan(iou[k]) ? Json() : Json(iou[k])}});
  return rows;
}

void print_report(const Json& result, const Evaluation& e, const std::vector<std::string>& names) {
  fmt::print("{}  {} {}, {} images\n", result["checkpoint"].get<std::string>(),
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

ExitCode run(const Options& options) {
  check(options.weights.given() == options.checkpoint.empty(),
        "eval: what of? Give a checkpoint, a run folder, or --weights FILE with --model NAME");
  const Checkpoint checkpoint = options.weights.given() ? options.weights.read(options.device)
                                                        : read_checkpoint(options.checkpoint, options.device);
  const Dataset dataset = open_for(checkpoint, options);
  const auto loader = evaluation_loader(options.split == "train" ? dataset.train : dataset.validation,
                                        Pipeline(checkpoint.data.empty_dataset()), options.batch);
  const Evaluation e = *evaluate(checkpoint.model, *loader, {.device = options.device, .go_on = {}});
  Json result{{"checkpoint", checkpoint.path.string()},
              {"dataset", dataset.name},
              {"split", options.split},
              {"images", e.images}};
  result.update(e.json());
  if (e.task == Task::classify)
    result.update({{"classes", class_rows(e, dataset.class_names)}, {"confusion", matrix_of(e)}});
  if (e.task == Task::segment) result["classes"] = iou_rows(e, dataset.class_names);
  if (options.json)
    print_json(result);
  else
    print_report(result, e, dataset.class_names);
  return ExitCode::done;
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App& command =
      add_command(app, "eval", "Top-1, top-5, loss, classes and confusion of a checkpoint.",
                  {"tessera eval runs/demo", "tessera eval runs/cifar/best.safetensors --data DIR --json",
                   "tessera eval --weights vit.safetensors --model vit.json --dataset imagenet --data DIR"});
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)");
  command.add_option("--dataset", options->dataset, "Data set, if not the one it was trained on")
      ->type_name("NAME");
  command.add_option("--data", options->data, "The data set's folder")->type_name("DIR");
  command.add_option("--split", options->split, "validation or train")
      ->check(CLI::IsMember({"validation", "train"}))
      ->capture_default_str()
      ->type_name("NAME");
  command.add_option("--batch", options->batch, "Images a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  options->weights.add_to(command);
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
