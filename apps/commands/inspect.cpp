#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/inspector/export.h"
#include "apps/inspector/lessons/lesson_page.h"
#include "apps/inspector/lessons/lessons.h"
#include "apps/inspector/page.h"
#include "apps/inspector/pass.h"
#include "apps/inspector/proof.h"
#include "apps/inspector/serve/lesson_stage.h"
#include "apps/inspector/serve/model_stage.h"
#include "apps/inspector/serve/server.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/options/validators.h"
#include "apps/reporting/proofs_table.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/task.h"
#include "data/formats/resize.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string source, image, dataset = "shapes", data, tensor, folder, out, lesson;
  int64_t index = 0, target = -1, head = -1, image_size = 32, classes = 10, port = 0, proofs = -1;
  uint64_t seed = 0;
  DType dtype = DType::f32;
  bool list = false, gradient = false, csv = false, json = false, is_lesson = false, serve = false;
};

constexpr Column columns[] = {
    {"name", "name"},
    {"op", "op"},
    {"shape", "shape", as_shape},
    {"kind", "kind"},
    {"gradient_text", "gradient"},
};

// The picture, of the size that the model takes, and the class of it where that is known (else -1).
struct Picture {
  Image image;
  int64_t label = -1;
};

Picture picture_of(const Options& options, int64_t size) {
  if (!options.image.empty())
    return {fit_square(load_image(options.image), static_cast<int>(size), options.image), -1};
  DatasetOptions how;
  how.image_size = static_cast<int>(size);
  if (!find_dataset(options.dataset).needs_folder) {  // drawn anew each time: no more than are shown
    how.train_images = 1;
    how.validation_images = options.index + 1;
  }
  const Dataset dataset = open_dataset(options.dataset, options.data, how);
  check(options.index < dataset.validation->size(), "inspect: --index ", options.index, ": ", options.dataset,
        " has ", dataset.validation->size(), " validation pictures");
  Picture picture;
  dataset.validation->image(options.index, picture.image);
  picture.label = dataset.validation->label(options.index);
  return picture;
}

// A fixture has a config, as a checkpoint has, but no facts of a data set.
bool is_fixture(const std::string& path) {
  if (!path.ends_with(".safetensors") || !fs::is_regular_file(path)) return false;
  const auto metadata = read_safetensors(path).metadata;
  return metadata.contains("config") && !metadata.contains("data");
}

Model in_type(const Model& model, DType dtype) {
  return model.parameters.begin()->value.dtype() == dtype ? model : copy_as(model, dtype);
}

// The class that the loss asks for: the one given, else the picture's own, else the likeliest.
int64_t target_of(const Options& options, const Picture& picture, const Model& model,
                  const Normalisation& normalisation) {
  if (options.target >= 0) return options.target;
  if (picture.label >= 0 && picture.label < model.num_classes()) return picture.label;
  const PassInputs pass = inputs_of_picture(model, picture.image, normalisation, 0);
  Pass state;
  const std::vector<double> logits = model.logits(pass.inputs.at("input"), state).values();
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

PassInputs inputs_of_model(const Options& options, Model model, const Normalisation& normalisation,
                           std::vector<std::string> class_names) {
  check(task_of(model.config) == Task::classify, "inspect: ", options.source,
        " is no classifier; a fixture (.safetensors with its inputs) of any model can be inspected");
  const Picture picture = picture_of(options, model.image_size());
  const int64_t target = target_of(options, picture, model, normalisation);
  PassInputs pass = inputs_of_picture(std::move(model), picture.image, normalisation, target);
  pass.class_names = std::move(class_names);
  return pass;
}

PassInputs inputs_of(const Options& options) {
  if (is_fixture(options.source)) return inputs_of_fixture(options.source, options.dtype);
  if (fs::exists(options.source)) {
    const Checkpoint checkpoint = read_checkpoint(options.source, Device::cpu);
    return inputs_of_model(options, in_type(checkpoint.model, options.dtype), checkpoint.data.normalisation,
                           checkpoint.data.class_names);
  }
  const Json config =
      ModelSource(options.source, options.image_size, options.classes).config_of_preset(options.source);
  return inputs_of_model(options, build(config, {.seed = options.seed, .dtype = options.dtype}),
                         imagenet_normalisation, {});
}

void print_list(const PassRecord& record, const Json& proofs, bool json) {
  Json rows = rows_of_values(record);
  for (size_t i = 0; i < rows.size(); ++i) {
    Json& row = rows[i];
    if (const auto found = proofs.find(std::to_string(i)); found != proofs.end()) row["proofs"] = *found;
    if (json) continue;
    const bool constant = row["kind"] == "constant";
    row["gradient_text"] = row["gradient"].get<bool>() ? "yes" : constant ? "-" : "none flowed";
  }
  print_rows(columns, rows, json);
  if (json || proofs.empty()) return;
  fmt::print("\n");
  print_proofs(record, proofs);
  fmt::print("{}\n", summary_of_proofs(record, proofs));
}

void print_tensor(const PassRecord& record, const Options& options) {
  const PassRecord::Value& value = record.value(options.tensor);
  check(!options.gradient || value.gradient.defined(), "inspect: no gradient flowed to ", value.name,
        value.kind == PassRecord::Kind::constant ? ", a constant" : "");
  Tensor x = options.gradient ? value.gradient : value.value;
  if (options.head >= 0) x = head_of(x, options.head, value.name);
  if (options.json)
    print_json(tensor_json(x));
  else
    fmt::print("{}", tensor_csv(x));
}

// "sl-vit", "cifar" for runs/cifar/, "sl-vit" for sl-vit.safetensors.
std::string name_of_source(const std::string& source) {
  const fs::path path = fs::path(source).lexically_normal();
  const std::string name = path.has_filename() ? path.stem().string() : path.parent_path().stem().string();
  return name.empty() ? "pass" : name;
}

// A pass as the command shows it, of a model or of a lesson.
struct Shown {
  const PassRecord& record;
  double loss;
  std::string name;  // of the page's file
  Json proofs;       // those that were asked for, by the places of the values
};

bool writes_page(const Options& options) {
  return !options.out.empty() || (!options.list && options.tensor.empty() && options.folder.empty());
}

void write_page(const Options& options, const Shown& shown, const Page& page) {
  const fs::path path = options.out.empty() ? fs::path(shown.name + ".html") : fs::path(options.out);
  write_page(page, path);
  fmt::print("{}: {:.1f} MB, {} values, {} steps, loss {:.6g}. Open it in a browser: xdg-open {}\n",
             path.string(), static_cast<double>(fs::file_size(path)) / 1e6, shown.record.values().size(),
             shown.record.steps().size(), shown.loss, path.string());
  fmt::print("{}\n", shown.proofs.empty() ? "no proofs; --proofs N makes them"
                                          : summary_of_proofs(shown.record, shown.proofs));
}

// Prints, exports or writes what the options ask for. `page` makes the page.
template <class MakePage> void show(const Options& options, const Shown& shown, const MakePage& page) {
  if (!options.folder.empty()) export_pass(shown.record, options.folder);
  if (writes_page(options)) write_page(options, shown, page());
  if (!options.tensor.empty()) {
    print_tensor(shown.record, options);
  } else if (options.list) {
    print_list(shown.record, shown.proofs, options.json);
  } else if (!options.folder.empty()) {
    fmt::print("{} values, {} steps, loss {:.6g}: in {}\n", shown.record.values().size(),
               shown.record.steps().size(), shown.loss, options.folder);
  }
}

void serve_stage(const Options& options, Stage& stage) {
  serve(stage, static_cast<int>(options.port), [](int port) {
    fmt::print("http://127.0.0.1:{}/ shows the page, on this machine alone; Ctrl-C ends it\n", port);
    std::fflush(stdout);
  });
}

Json proofs_of_model(const Options& options, const PassInputs& inputs, const PassRecord& record) {
  int64_t count = options.proofs;
  if (count < 0) count = writes_page(options) ? usual_proofs(inputs, record) : 0;
  return count == 0 ? Json::object() : proofs_of([&] { return experiment_of(inputs); }, count);
}

void show_model(const Options& options) {
  const PassInputs inputs = inputs_of(options);
  const std::string name = name_of_source(options.source);
  if (options.serve) {
    ModelStage stage(inputs, {.title = name, .source = options.source, .target = options.target});
    return serve_stage(options, stage);
  }
  const InspectedPass pass = inspect_pass(inputs);
  const Json proofs = proofs_of_model(options, inputs, pass.record);
  show(options, {pass.record, pass.loss, name, proofs}, [&] {
    Page page{.title = name};
    PagePass& shown = page.passes.emplace_back(page_pass(inputs, pass));
    shown.title = name;
    shown.source = options.source;
    shown.proofs = proofs;
    return page;
  });
}

void show_lesson(const Options& options) {
  if (options.serve) {
    LessonStage stage(find_lesson(options.lesson), options.dtype);
    return serve_stage(options, stage);
  }
  const LessonRun lesson = run_lesson(find_lesson(options.lesson), Numbers(options.dtype));
  const Page page = lesson_page(lesson);
  show(options, {lesson.pass, lesson.loss(), options.lesson, page.passes[0].proofs}, [&] { return page; });
}

void list_lessons(bool json) {
  constexpr Column of_lesson[] = {{"name", "lesson"}, {"title", "about"}};
  Json rows = Json::array();
  for (const Lesson* lesson : all_lessons())
    rows.push_back({{"name", lesson->name}, {"title", lesson->title}});
  print_rows(of_lesson, rows, json);
  if (!json)
    fmt::print("\nIn this order. tessera inspect --lesson {} writes the page of the first.\n",
               all_lessons().front()->name);
}

ExitCode run(const Options& options) {
  check(options.tensor.empty() ? !options.gradient && options.head < 0 && !options.csv : true,
        "inspect: --grad, --head and --csv say how --tensor NAME is printed; give it");
  check(!options.csv || !options.json, "inspect: --csv or --json, not both");
  check(!options.serve || (!options.list && options.tensor.empty() && options.folder.empty() &&
                           options.out.empty() && !options.json),
        "inspect: --serve shows the page in a browser; --list, --tensor, --export, --out and --json go "
        "without it");
  check(options.proofs < 0 || (!options.serve && options.tensor.empty()),
        "inspect: --proofs goes with the page and with --list; with --serve the page asks for proofs itself");
  check(options.serve || options.port == 0, "inspect: --port goes with --serve");
  check(!options.serve || !options.is_lesson || !options.lesson.empty(),
        "inspect: --serve needs --lesson NAME");
  check(options.is_lesson != !options.source.empty(), "inspect: ",
        options.is_lesson ? "a model or --lesson, not both; '" + options.source + "' came besides"
                          : "a run, a preset, a fixture or --lesson is wanted; see tessera inspect --help");
  if (!options.is_lesson)
    show_model(options);
  else if (options.lesson.empty())
    list_lessons(options.json);
  else
    show_lesson(options);
  return ExitCode::done;
}

}  // namespace

void add_inspect(Command& app) {
  Command& command = add_command(
      app, "inspect", "Every value and every gradient of one forward and backward pass.",
      {"tessera inspect runs/cifar --image cat.png --out cat.html",
       "tessera inspect runs/cifar --image cat.png --list",
       "tessera inspect sl-vit --tensor blocks.5.attn.scores --grad --head 3 --csv",
       "tessera inspect runs/cifar --dataset cifar10 --data DIR --index 7 --export pass",
       "tessera inspect tests/fixtures/sl-vit.safetensors --dtype f64 --export pass",
       "tessera inspect --lesson", "tessera inspect --lesson chain-rule"},
      "Writes one HTML file that a browser opens from disk and that holds every number, or else prints "
      "or exports them.\n"
      "Runs one picture through the model, forward and backward from its loss, with attention as "
      "it is defined,\n"
      "so that scores and probabilities exist. A name is the path of a module and the role of "
      "the value in it\n"
      "(blocks.5.attn.scores, .probabilities, .q; blocks.5.mlp.fc1.out; input; parameters by "
      "their own names).\n"
      "--export writes values.safetensors, gradients.safetensors, and pass.json with the steps, "
      "their formulas\n"
      "and what each reads and makes.");
  const auto options = std::make_shared<Options>();
  command.add_option("model", options->source, "A run folder, a checkpoint, a preset, or a fixture")
      ->type_name("RUN|PRESET|FILE");
  command
      .add_option(
          "--lesson", options->lesson,
          "Instead of a model: a small program, all of whose numbers fit on the page, in f64 unless --dtype "
          "is given. Without NAME: a list of the lessons, in their order")
      ->expected(0, 1)
      ->type_name("[NAME]");
  Option* image = command.add_option("--image", options->image, "A picture")->type_name("FILE");
  command.add_option("--dataset", options->dataset, "Without --image: a validation picture of this data set")
      ->capture_default_str()
      ->excludes(image)
      ->type_name("NAME");
  command.add_option("--data", options->data, "The folder of the data set")->type_name("DIR");
  command.add_option("--index", options->index, "Which picture of the data set, from 0")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("I");
  command
      .add_option("--target", options->target,
                  "The class that the loss asks for. Default: the picture's own, or the likeliest")
      ->check(non_negative())
      ->type_name("CLASS");
  command
      .add_option("--out", options->out,
                  "Write the page here. Default: NAME.html, where nothing else is asked for")
      ->type_name("FILE");
  command.add_flag("--serve", options->serve,
                   "Show the page at a loopback address, with the engine behind it, until Ctrl-C");
  command.add_option("--port", options->port, "With --serve: the port; 0: a free one")
      ->check(between(0, 65535))
      ->capture_default_str()
      ->type_name("P");
  command
      .add_option("--proofs", options->proofs,
                  "Prove N cells of every gradient, the largest and others drawn at random, by central "
                  "differences of the whole model in double. Default: 4 in a page, fewer of a large model")
      ->check(non_negative())
      ->type_name("N");
  command.add_flag("--list", options->list, "List every value: name, op, shape");
  command.add_option("--tensor", options->tensor, "Print this value")->type_name("NAME");
  command.add_flag("--grad", options->gradient, "With --tensor: print its gradient");
  command.add_option("--head", options->head, "With --tensor: of one head, from 0")
      ->check(non_negative())
      ->type_name("H");
  command.add_flag("--csv", options->csv, "With --tensor: as CSV, which is the default");
  command.add_option("--export", options->folder, "Write all values and gradients into DIR")
      ->type_name("DIR");
  command.add_option("--image-size", options->image_size, "Of a preset: pixels a side")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--classes", options->classes, "Of a preset: number of classes")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  add_dtype(command, options->dtype, {DType::f32, DType::f64});
  add_seed(command, options->seed);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options, &command] {
    options->is_lesson = command.given("--lesson");
    if (options->is_lesson && !command.given("--dtype")) options->dtype = DType::f64;
    return run(*options);
  });
}

}  // namespace tessera
