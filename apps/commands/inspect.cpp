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
#include "apps/options/inspect_options.h"
#include "apps/reporting/proofs_table.h"
#include "apps/reporting/table.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

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

void print_tensor(const PassRecord& record, const InspectOptions& options) {
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

void write_page(const InspectOptions& options, const std::string& name, const Page& page) {
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
void print_asked(const InspectOptions& options, const PassRecord& record, const Json& proofs) {
  if (!options.tensor.empty())
    print_tensor(record, options);
  else if (options.list)
    print_list(record, proofs, options.json);
}

void serve_stage(const InspectOptions& options, Stage& stage) {
  serve(stage, static_cast<int>(options.port), [](int port) {
    fmt::print("http://127.0.0.1:{}/ shows the page, on this machine alone; Ctrl-C ends it\n", port);
    std::fflush(stdout);
  });
}

void serve_model(const InspectOptions& options, const Subject& subject) {
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

void show_model(const InspectOptions& options) {
  const Subject subject = read_subject(options.source, options.subject);
  if (options.serve) return serve_model(options, subject);
  std::vector<Subject> with;
  for (const std::string& other : options.with) with.push_back(read_subject(other, options.subject));
  const Passes passes(subject, with, options.request);
  const bool prints = options.list || !options.tensor.empty();
  const RequestedPass* one = prints ? &passes.one() : nullptr;
  if (!options.folder.empty()) passes.write_into(options.folder);
  if (options.asks_for_page()) {
    const Page page = passes.page();
    write_page(options, subject.name, page);
    if (const auto terms = terms_not_shown(page); !prints && !terms.empty())
      fmt::print("Terms of the model that can be switched off (--without): {}\n", fmt::join(terms, ", "));
  }
  if (prints) return print_asked(options, one->pass.record, one->proofs);
  for (const RequestedPass& pass : passes.all()) fmt::print("{}: {}\n", pass.title, loss_words(pass));
  if (!options.folder.empty()) fmt::print("values, gradients and steps are in {}\n", options.folder);
}

void show_lesson(const InspectOptions& options) {
  check(options.with.empty() && options.request.without.empty() && options.request.only.empty(),
        "inspect: a lesson is shown whole and by itself, without --with, --without and --only");
  if (options.serve) {
    LessonStage stage(find_lesson(options.lesson), options.subject.dtype);
    return serve_stage(options, stage);
  }
  const LessonRun lesson = run_lesson(find_lesson(options.lesson), Numbers(options.subject.dtype));
  const Page page = lesson_page(lesson);
  if (!options.folder.empty()) export_pass(lesson.pass, options.folder, {{"title", options.lesson}});
  if (options.asks_for_page()) write_page(options, options.lesson, page);
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

ExitCode run(const InspectOptions& options) {
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
  const auto options = std::make_shared<InspectOptions>();
  add_inspect_options(command, *options);
  on_run(command, [options, &command] {
    complete(command, *options);
    return run(*options);
  });
}

}  // namespace tessera
