#include "apps/options/inspect_options.h"

#include <algorithm>
#include <filesystem>

#include "apps/options/model_source.h"
#include "apps/options/output_file.h"
#include "apps/options/validators.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

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
void expect_no_sizes(const Command& command, const InspectOptions& options) {
  std::vector<std::string> models = options.with;
  models.insert(models.begin(), options.is_lesson ? "--lesson" : options.source);
  const auto is_preset = [](const std::string& model) { return model != "--lesson" && !fs::exists(model); };
  if (std::ranges::none_of(models, is_preset))
    expect_not_given(command, models.front(), {"--image-size", "--classes"});
}

void add_comparisons(Command& command, InspectOptions& options) {
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

void expect_no_contradiction(const InspectOptions& options) {
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
}

}  // namespace

void add_inspect_options(Command& command, InspectOptions& options) {
  command.add_option("model", options.source, "A run folder, a checkpoint, a preset, or a fixture")
      ->type_name("RUN|PRESET|FILE");
  command
      .add_option(
          "--lesson", options.lesson,
          "Instead of a model: a small program, all of whose numbers fit on the page, in f64 unless --dtype "
          "is given. Without NAME: a list of the lessons, in their order")
      ->expected(0, 1)
      ->type_name("[NAME]");
  add_picture_options(command, options.request);
  add_comparisons(command, options);
  command
      .add_option("--out", options.out,
                  "Write the page here. Default: NAME.html, where nothing else is asked for")
      ->type_name("FILE");
  command.add_flag("--serve", options.serve,
                   "Show the page at a loopback address, with the engine behind it, until Ctrl-C");
  command.add_option("--port", options.port, "With --serve: the port; 0: a free one")
      ->check(between(0, 65535))
      ->capture_default_str()
      ->type_name("P");
  command
      .add_option("--proofs", options.request.proofs,
                  "Prove N cells of every gradient, the largest and others drawn at random, by central "
                  "differences of the whole model in double. Default: 4 in a page, fewer of a large model")
      ->check(non_negative())
      ->type_name("N");
  command.add_flag("--list", options.list, "List every value: name, op, shape");
  command.add_option("--tensor", options.tensor, "Print this value")->type_name("NAME");
  command.add_flag("--grad", options.gradient, "With --tensor: print its gradient");
  command.add_option("--head", options.head, "With --tensor: of one head, from 0")
      ->check(non_negative())
      ->type_name("H");
  command.add_flag("--csv", options.csv, "With --tensor: as CSV, which is the default");
  command.add_option("--export", options.folder, "Write all values and gradients into DIR")->type_name("DIR");
  command.add_option("--image-size", options.subject.image_size, "Of a preset: pixels a side")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--classes", options.subject.classes, "Of a preset: number of classes")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  add_dtype(command, options.subject.dtype, {DType::f32, DType::f64});
  add_seed(command, options.subject.seed);
  add_threads(command);
  add_json(command, options.json);
}

void complete(const Command& command, InspectOptions& options) {
  options.is_lesson = command.given("--lesson");
  if (options.is_lesson && !command.given("--dtype")) options.subject.dtype = DType::f64;
  expect_no_sizes(command, options);
  options.request.question.seed = options.subject.seed;
  options.request.updates = options.asks_for_page() || !options.folder.empty();
  if (!command.given("--proofs")) options.request.proofs = options.asks_for_page() ? -1 : 0;
  expect_no_contradiction(options);
  expect_output("inspect: --out", options.out);
}

}  // namespace tessera
