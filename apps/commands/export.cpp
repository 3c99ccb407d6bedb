// tessera export: a trained model for other programs.

#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/exporting/onnx.h"
#include "apps/exporting/source.h"
#include "apps/exporting/timm.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/training/run_folder.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string source, format = "safetensors", out, sample;
  int64_t image_size = 32, classes = 10;
  uint64_t seed = 0;
};

struct Format {
  const char* name;
  const char* ending;  // of the file that is written where --out does not say
  void (*write)(const ExportSource& source, const std::string& path);
};

void write_onnx(const ExportSource& source, const std::string& path) {
  write_file_atomically(path, onnx_of(source.model, source.name, export_metadata(source)));
}

constexpr Format formats[] = {
    {"safetensors", ".safetensors", export_safetensors},
    {"onnx", ".onnx", write_onnx},
    {"timm", "-timm", export_timm},
};

const Format& format_named(const std::string& name) {
  for (const Format& each : formats)
    if (each.name == name) return each;
  fail("export: --format ", name, ": wanted safetensors, onnx or timm");
}

// A format that is a folder makes it, and writes a config.json there.
void expect_outputs(const Options& options, const Format& format, const fs::path& out) {
  if (format.write != export_timm)
    expect_output("export: --out", out);
  else
    check(!is_file_of_run(out / "config.json"), "export: --out ", out.string(),
          ": is the folder of a training run, whose config.json would be lost; give another folder");
  expect_output("export: --sample", options.sample);
}

// A file says itself how large its model is, and all but a config which weights it has.
void expect_no_sizes(const Command& command, const std::string& source) {
  const bool is_config = source.ends_with(".json");
  if (is_config || fs::exists(source)) expect_not_given(command, source, {"--image-size", "--classes"});
  if (!is_config && fs::exists(source)) expect_not_given(command, source, {"--seed"});
}

ExitCode run(const Command& command, const Options& options) {
  const Format& format = format_named(options.format);
  expect_no_sizes(command, options.source);
  const ExportSource source =
      read_export_source(options.source, options.image_size, options.classes, options.seed);
  const std::string out = options.out.empty() ? source.name + format.ending : options.out;
  const bool overwrites =
      fs::exists(options.source) && fs::exists(out) && fs::equivalent(options.source, out);
  check(!overwrites, "export: ", out, " is the model itself; give another --out");
  expect_outputs(options, format, out);
  format.write(source, out);
  if (!options.sample.empty()) write_safetensors(options.sample, export_sample(source.model, 3));
  fmt::print("{}: {}, {} classes, images of {} x {} pixels\n", printable(out),
             source.model.config.at("arch").get<std::string>(), source.model.num_classes(),
             source.model.image_size(), source.model.image_size());
  return ExitCode::done;
}

}  // namespace

void add_export(Command& app) {
  Command& command = add_command(
      app, "export", "A trained model for other programs: ONNX, timm, or safetensors with its metadata.",
      {"tessera export runs/cifar --format onnx",
       "tessera export runs/cifar --format onnx --out cifar.onnx --sample sample.safetensors",
       "tessera export runs/cifar --format timm --out cifar-timm",
       "tessera export runs/cifar --format safetensors --out cifar.safetensors"},
      "ONNX (opset 17) takes any number of images at once, normalised: pixels / 255 minus the mean, over the "
      "deviation, red, green and blue first. Classes, mean, deviation, image size and the model's config are "
      "in "
      "the metadata of every file. timm's export is a folder for "
      "timm.create_model(\"local-dir:FOLDER\", pretrained=True): ViT, PiT, Swin and EfficientNet-B0, as far "
      "as "
      "timm has their parts.");
  const auto options = std::make_shared<Options>();
  command
      .add_option(
          "model", options->source,
          "A run folder (its best checkpoint), a checkpoint, a config (.json), or a preset with new weights")
      ->required();
  command.add_option("--format", options->format, "safetensors, onnx or timm")
      ->capture_default_str()
      ->type_name("NAME");
  command
      .add_option("--out", options->out,
                  "The file, or timm's folder; by default the model's name in this folder")
      ->type_name("FILE");
  command
      .add_option("--sample", options->sample,
                  "Write three inputs, and what this program computes of them, to check the file elsewhere")
      ->type_name("FILE");
  command.add_option("--image-size", options->image_size, "Of a preset")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--classes", options->classes, "Of a preset")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  add_seed(command, options->seed);
  add_threads(command);
  on_run(command, [options, &command] { return run(command, *options); });
}

}  // namespace tessera
