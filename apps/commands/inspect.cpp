#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/inspector/export.h"
#include "apps/inspector/lessons/lesson_page.h"
#include "apps/inspector/lessons/lessons.h"
#include "apps/inspector/page.h"
#include "apps/inspector/passes.h"
#include "apps/inspector/serve/lesson_stage.h"
#include "apps/inspector/serve/model_stage.h"
#include "apps/inspector/serve/server.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/options/validators.h"
#include "apps/reporting/proofs_table.h"
#include "apps/reporting/table.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string source, tensor, folder, out, lesson;
  std::vector<std::string> with;
  SubjectOptions subject;
  PassRequest request;
  int64_t head = -1, port = 0;
  bool list = false, gradient = false, csv = false, json = false, is_lesson = false, serve = false;
};

constexpr Column columns[] = {
    {"name", "name"},
    {"op", "op"},
    {"shape", "shape", as_shape},
    {"kind", "kind"},
    {"gradient_text", "gradient"},
};

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
  if (options.head >= 0) x = head_of(x, options.head, record, value);
  if (options.json)
    print_json(tensor_json(x));
  else
    fmt::print("{}", tensor_csv(x));
}

bool asks_for_page(const Options& options) {
  return !options.out.empty() || (!options.list && options.tensor.empty() && options.folder.empty());
}

void write_page(const Options& options, const std::string& name, const Page& page) {
  const fs::path path = options.out.empty() ? fs::path(name + ".html") : fs::path(options.out);
  write_page(page, path);
  const PassRecord& record = *page.passes.front().record;
  const size_t more = page.passes.size() - 1;
  fmt::print("{}: {:.1f} MB, {} values, {} steps{}. Open it in a browser: xdg-open {}\n", path.string(),
             static_cast<double>(fs::file_size(path)) / 1e6, record.values().size(), record.steps().size(),
             more == 0 ? "" : fmt::format(", and {} more pass{}", more, more == 1 ? "" : "es"),
             path.string());
  const Json& proofs = page.passes.front().proofs;
  fmt::print("{}\n", proofs.empty() ? "no proofs; --proofs N makes them" : summary_of_proofs(record, proofs));
}

// What --list and --tensor print of a pass.
void print_asked(const Options& options, const PassRecord& record, const Json& proofs) {
  if (!options.tensor.empty())
    print_tensor(record, options);
  else if (options.list)
    print_list(record, proofs, options.json);
}

void serve_stage(const Options& options, Stage& stage) {
  serve(stage, static_cast<int>(options.port), [](int port) {
    fmt::print("http://127.0.0.1:{}/ shows the page, on this machine alone; Ctrl-C ends it\n", port);
    std::fflush(stdout);
  });
}

void serve_model(const Options& options, const Subject& subject) {
  check(options.with.empty() && options.request.only.empty() && options.request.pictures.images.size() < 2,
        "inspect: --serve shows one pass; --with, --only and further pictures go without it");
  const auto& files = options.request.pictures.images;
  ModelStage stage(inputs_of(subject, options.request, files.empty() ? "" : files.front()),
                   {.title = subject.name,
                    .source = options.source,
                    .question = options.request.question,
                    .fit = test_fit(subject.data)});
  for (const std::string& term : options.request.without) stage.set_term(term, false);
  serve_stage(options, stage);
}

void show_model(const Options& options) {
  const Subject subject = read_subject(options.source, options.subject);
  if (options.serve) return serve_model(options, subject);
  std::vector<Subject> with;
  for (const std::string& other : options.with) with.push_back(read_subject(other, options.subject));
  const Passes passes(subject, with, options.request);
  const bool prints = options.list || !options.tensor.empty();
  const RequestedPass* one = prints ? &passes.one() : nullptr;
  if (!options.folder.empty()) passes.write_into(options.folder);
  if (asks_for_page(options)) {
    const Page page = passes.page();
    write_page(options, subject.name, page);
    if (const auto terms = terms_not_shown(page); !prints && !terms.empty())
      fmt::print("Terms of the model that can be switched off (--without): {}\n", fmt::join(terms, ", "));
  }
  if (prints) return print_asked(options, one->pass.record, one->proofs);
  for (const RequestedPass& pass : passes.all()) fmt::print("{}: {}\n", pass.title, loss_words(pass));
  if (!options.folder.empty()) fmt::print("values, gradients and steps are in {}\n", options.folder);
}

void show_lesson(const Options& options) {
  check(options.with.empty() && options.request.without.empty() && options.request.only.empty(),
        "inspect: a lesson is shown whole and by itself, without --with, --without and --only");
  if (options.serve) {
    LessonStage stage(find_lesson(options.lesson), options.subject.dtype);
    return serve_stage(options, stage);
  }
  const LessonRun lesson = run_lesson(find_lesson(options.lesson), Numbers(options.subject.dtype));
  const Page page = lesson_page(lesson);
  if (!options.folder.empty()) export_pass(lesson.pass, options.folder, {{"title", options.lesson}});
  if (asks_for_page(options)) write_page(options, options.lesson, page);
  print_asked(options, lesson.pass, page.passes[0].proofs);
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
  check(!options.list || options.tensor.empty(), "inspect: --list or --tensor NAME, not both");
  check(!options.serve || (!options.list && options.tensor.empty() && options.folder.empty() &&
                           options.out.empty() && !options.json),
        "inspect: --serve shows the page in a browser; --list, --tensor, --export, --out and --json go "
        "without it");
  check(options.request.proofs <= 0 || (!options.serve && options.tensor.empty()),
        "inspect: --proofs goes with the page and with --list; with --serve the page asks for proofs itself");
  check(options.serve || options.port == 0, "inspect: --port goes with --serve");
  check(!options.json || options.list || !options.tensor.empty() || options.is_lesson,
        "inspect: --json says how --list and --tensor are printed; give one of them");
  check(!options.serve || !options.is_lesson || !options.lesson.empty(),
        "inspect: --serve needs --lesson NAME");
  check(options.is_lesson != !options.source.empty(), "inspect: ",
        options.is_lesson ? "a model or --lesson, not both; '" + options.source + "' came besides"
                          : "a run, a preset, a fixture or --lesson is wanted; see tessera inspect --help");
  expect_output("inspect: --out", options.out);
  if (!options.is_lesson)
    show_model(options);
  else if (options.lesson.empty())
    list_lessons(options.json);
  else
    show_lesson(options);
  return ExitCode::done;
}

}  // namespace

namespace {

void add_picture_options(Command& command, PassRequest& request) {
  PictureSource& pictures = request.pictures;
  Option* image =
      command.add_option("--image", pictures.images, "A picture; further ones are shown beside it");
  image->type_name("FILE...");
  command
      .add_option("--dataset", pictures.dataset,
                  "Without --image: a validation picture of this data set. Default: the run's own, or shapes")
      ->excludes(image)
      ->type_name("NAME");
  command.add_option("--data", pictures.folder, "The folder of the data set")->type_name("DIR");
  command.add_option("--index", pictures.index, "Which picture of the data set, from 0")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("I");
  command
      .add_option(
          "--target", request.question.target,
          "The class that the loss asks for: of the picture, of every pixel of a segmenter, or the label "
          "that a diffusion model is told. Default: the picture's own, or the likeliest")
      ->check(non_negative())
      ->type_name("CLASS");
  command
      .add_option("--time", request.question.time,
                  "Of a diffusion model: the time, from 0. Default: the middle")
      ->check(non_negative())
      ->type_name("T");
}

// Sizes are a preset's. A run, a fixture and a lesson say theirs themselves.
void expect_no_sizes(const Command& command, const Options& options) {
  std::vector<std::string> models = options.with;
  models.insert(models.begin(), options.is_lesson ? "--lesson" : options.source);
  const auto is_preset = [](const std::string& model) { return model != "--lesson" && !fs::exists(model); };
  if (std::ranges::none_of(models, is_preset))
    expect_not_given(command, models.front(), {"--image-size", "--classes"});
}

void add_comparisons(Command& command, Options& options) {
  command.add_option("--with", options.with, "Another run or preset beside it, on the same picture")
      ->type_name("RUN2");
  command
      .add_option(
          "--without", options.request.without,
          "The same pass with this term of the model switched off: mask, temperature, prior ...; or all")
      ->delimiter(',')
      ->type_name("TERM,...");
  command
      .add_option("--only", options.request.only,
                  "Keep these modules alone, 'blocks.4' or 'blocks.*.attn' say; what is left out is said")
      ->delimiter(',')
      ->type_name("MODULE,...");
}

}  // namespace

void add_inspect(Command& app) {
  Command& command = add_command(
      app, "inspect", "Every value and every gradient of one forward and backward pass.",
      {"tessera inspect runs/cifar --image cat.png --out cat.html",
       "tessera inspect runs/cifar --image cat.png --list",
       "tessera inspect sl-vit --tensor blocks.5.attn.scores --grad --head 3 --csv",
       "tessera inspect runs/cifar --dataset cifar10 --data DIR --index 7 --export pass",
       "tessera inspect runs/cifar --image cat.png --with runs/cifar-plain --without mask,temperature",
       "tessera inspect sp-vit-s --image-size 224 --image cat.png --only blocks.4,blocks.5",
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
  add_picture_options(command, options->request);
  add_comparisons(command, *options);
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
      .add_option("--proofs", options->request.proofs,
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
  command.add_option("--image-size", options->subject.image_size, "Of a preset: pixels a side")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--classes", options->subject.classes, "Of a preset: number of classes")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  add_dtype(command, options->subject.dtype, {DType::f32, DType::f64});
  add_seed(command, options->subject.seed);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options, &command] {
    options->is_lesson = command.given("--lesson");
    if (options->is_lesson && !command.given("--dtype")) options->subject.dtype = DType::f64;
    expect_no_sizes(command, *options);
    options->request.question.seed = options->subject.seed;
    options->request.updates = asks_for_page(*options) || !options->folder.empty();
    if (!command.given("--proofs")) options->request.proofs = asks_for_page(*options) ? -1 : 0;
    return run(*options);
  });
}

}  // namespace tessera
