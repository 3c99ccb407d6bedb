// tessera diagnose: what the attention of trained models has learned, in figures and numbers.

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/data_source.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/reporting/diagnosis_page.h"
#include "apps/reporting/picture_files.h"
#include "apps/reporting/run_names.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/csv.h"
#include "apps/training/task.h"
#include "data/augment/pipeline.h"
#include "data/formats/resize.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::vector<std::string> runs, pictures;
  std::string data, split = "validation", out = "diagnose.html", csv;
  int64_t images = 256, batch = 16, shown = 4;
  Place query;
  DType dtype = DType::f32;
  bool json = false;
};

// The pictures or latents that a run is measured on: files, or the first of a split of its own data set.
class Pictures {
 public:
  Pictures(const Options& options, const Checkpoint& checkpoint)
      : size_(static_cast<int>(checkpoint.data.image_size)),
        fit_(test_fit(checkpoint.data.source)),
        pipeline_(checkpoint.data.empty_dataset()) {
    if (!options.pictures.empty()) {
      check(checkpoint.data.latent_scale == 0, "diagnose: --pictures: ", checkpoint.path.string(),
            " takes an autoencoder's latents, which picture files are not; leave --pictures out");
      files_ = picture_files(options.pictures);
      about_ = fmt::format("{} pictures", files_.size());
      return;
    }
    DataConfig source = checkpoint.data.source;
    check(!source.name.empty(), "diagnose: ", checkpoint.path.string(),
          " says nothing of its data; give pictures by --pictures");
    check_folder(source.name, options.data);
    source.dir = options.data.empty() ? data_folder_of(checkpoint) : options.data;
    source.image_size = size_;
    const Dataset dataset = open_data(source, task_of(checkpoint.model.config));
    split_ = options.split == "train" ? dataset.train : dataset.validation;
    count_ = options.images == 0 ? split_->size() : std::min(options.images, split_->size());
    about_ = fmt::format("{} {} of the {} split of {}", count_, can_be_shown() ? "images" : "latents",
                         options.split, dataset.name);
  }

  int64_t count() const { return split_ ? count_ : std::ssize(files_); }
  const std::string& about() const { return about_; }
  bool can_be_shown() const { return !split_ || !split_->has_latents(); }  // latents have no pixels
  std::string name(int64_t i) const { return split_ ? split_->source(i) : files_[static_cast<size_t>(i)]; }

  Image image(int64_t i) const {
    Image image;
    if (split_)
      split_->image(i, image);
    else
      image = fit_square(load_image(name(i)), size_, name(i), fit_);
    return image;
  }

  // Images first to first + count as the model sees them. [count, C, H, W]
  Tensor batch(int64_t first, int64_t count, DType dtype) const {
    const Shape& one = pipeline_.image_shape();
    const Tensor images = Tensor::empty({count, one[0], one[1], one[2]});
    for (int64_t i = 0; i < count; ++i) write(first + i, images.data<float>() + i * one.elements());
    return images.to(dtype);
  }

 private:
  // A latent of which the distribution is stored is drawn by its number, so it is the same in every batch.
  void write(int64_t i, float* to) const {
    if (!can_be_shown()) return split_->latent(i, Random(0).split(static_cast<uint64_t>(i)), to);
    Image used = image(i);
    pipeline_(used, Random(0), to);
  }

  int size_;
  SquareFit fit_;
  Pipeline pipeline_;
  std::vector<std::string> files_;
  std::shared_ptr<const Split> split_;
  int64_t count_ = 0;
  std::string about_;
};

// The sheet of picture i, on which earlier runs have their maps if they saw the same picture.
ComparedPicture& sheet_of(const Pictures& pictures, int64_t i, std::vector<ComparedPicture>& compared) {
  ComparedPicture wanted{pictures.name(i), pictures.image(i), {}};
  const auto same = [&](const ComparedPicture& other) {
    const bool one_size = other.image.height == wanted.image.height;
    return other.name == wanted.name && (!one_size || other.image.pixels == wanted.image.pixels);
  };
  const auto found = std::ranges::find_if(compared, same);
  return found != compared.end() ? *found : compared.emplace_back(std::move(wanted));
}

struct Measured {
  DiagnosedRun run;
  Json json;
};

Measured measure(const std::string& path, const std::string& name, const Options& options,
                 std::vector<ComparedPicture>& compared) {
  const Checkpoint checkpoint = read_checkpoint(path, Device::cpu);
  const Pictures pictures(options, checkpoint);
  const Model model = copy_as(checkpoint.model, options.dtype);
  AttentionDiagnosis diagnosis(model);
  for (int64_t i = 0; i < pictures.count(); i += options.batch)
    diagnosis.add(pictures.batch(i, std::min(options.batch, pictures.count() - i), options.dtype));
  diagnosis.look_at(pictures.batch(0, 1, options.dtype), options.query);
  const int64_t shown = pictures.can_be_shown() ? std::min(options.shown, pictures.count()) : 0;
  for (int64_t i = 0; i < shown; ++i) {
    const AttentionRecord record = record_attention(model, pictures.batch(i, 1, options.dtype));
    sheet_of(pictures, i, compared).maps.push_back({name, record.layers.back().mean_heat()});
  }
  Json json = to_json(diagnosis);
  json["run"] = name;
  json["checkpoint"] = checkpoint.path.string();
  json["measured_on"] = pictures.about();
  json["images"] = pictures.count();
  json["query"] = {options.query.row, options.query.column};
  return {{name, pictures.about(), diagnosis.layers(), diagnosis.priors()}, std::move(json)};
}

// Lines of a CSV file: a number with the run, the module and the head (from 1) that it is of, and its row and
// column where it is one of a matrix.
class NumberLines {
 public:
  void add(const Json& run) {
    for (const Json& layer : run["layers"]) {
      const auto line = [&](const char* what, const Json& values) {
        by_head(run, layer["path"], what, values);
      };
      line("sqrt_d", Json::array({layer["sqrt_d"]}));
      line("temperature", layer["temperature"]);
      line("divergence", layer["divergence"]);
      if (layer.contains("decay")) line("decay", layer["decay"]);
    }
    for (const Json& prior : run["priors"]) by_head(run, prior["path"], "prior", prior["omega"]);
  }

  const std::string& text() const { return text_; }

 private:
  void by_head(const Json& run, const Json& path, const char* what, const Json& heads) {
    for (size_t h = 0; h < heads.size(); ++h) {
      const auto put = [&](const std::string& row, const std::string& column, const Json& value) {
        text_ += csv_line({run["run"].get<std::string>(), path.get<std::string>(), what,
                           std::to_string(h + 1), row, column, value.is_null() ? "" : value.dump()});
      };
      if (!heads[h].is_array()) put("", "", heads[h]);
      for (size_t i = 0; heads[h].is_array() && i < heads[h].size(); ++i)
        for (size_t j = 0; j < heads[h][i].size(); ++j)
          put(std::to_string(i), std::to_string(j), heads[h][i][j]);
    }
  }

  std::string text_ = csv_line({"run", "module", "quantity", "head", "row", "column", "value"});
};

double mean_of(const Json& values) {
  double sum = 0;
  for (const Json& value : values) sum += value.get<double>();
  return sum / static_cast<double>(values.size());
}

void print_layers(const Json& run) {
  constexpr Column columns[] = {{"layer", "layer", as_integer},
                                {"path", "module"},
                                {"sqrt_d", "sqrt(d)", as_loss},
                                {"mean_temperature", "temperature", as_loss},
                                {"kind", ""},
                                {"mean_divergence", "divergence", as_loss}};
  Json rows = run["layers"];
  for (Json& row : rows) {
    row["kind"] = row["learned"].get<bool>() ? "learned" : "fixed";
    row["mean_temperature"] = row["temperature"].empty() ? Json() : Json(mean_of(row["temperature"]));
    row["mean_divergence"] = mean_of(row["divergence"]);
  }
  fmt::print("{}: {}\n\n", run["run"].get<std::string>(), run["measured_on"].get<std::string>());
  print_table(columns, rows);
  fmt::print("\n");
}

ExitCode run(const Options& options) {
  std::vector<DiagnosedRun> runs;
  std::vector<ComparedPicture> compared;
  Json all = Json::array();
  NumberLines lines;
  for (const std::string& path : options.runs)
    check(fs::exists(path), "diagnose: ", path,
          ": no such file or folder; a run folder or a checkpoint (.safetensors) is wanted");
  expect_output("diagnose: --out", options.out);
  expect_output("diagnose: --csv", options.csv);
  const std::vector<std::string> names = names_of_runs(options.runs);
  for (size_t r = 0; r < options.runs.size(); ++r) {
    Measured measured = measure(options.runs[r], names[r], options, compared);
    runs.push_back(std::move(measured.run));
    all.push_back(std::move(measured.json));
    lines.add(all.back());
    if (!options.json) print_layers(all.back());
  }
  write_file_atomically(options.out, diagnosis_page(runs, compared));
  if (!options.csv.empty()) write_file_atomically(options.csv, lines.text());
  if (options.json)
    print_json({{"page", options.out}, {"runs", all}});
  else
    fmt::print("The figures are in {}\n", options.out);
  return ExitCode::done;
}

}  // namespace

void add_diagnose(Command& app) {
  Command& command = add_command(
      app, "diagnose", "What attention has learned, by depth and head, for several runs in one page.",
      {"tessera diagnose runs/vit runs/sl-vit",
       "tessera diagnose runs/sp-vit --images 0 --csv numbers.csv --json",
       "tessera diagnose runs/sdt --pictures cat.jpg --query-row 0.3 --query-column 0.6"},
      "The temperature of every head beside sqrt(d); the mean Kullback-Leibler divergence of the rows of "
      "attention "
      "from uniform over the first images of a split; where each run looks; SP-SA's learned priors by "
      "offset; the "
      "decay of RMT and SDT around one query of the first picture. Figures go into one HTML file, all "
      "numbers into "
      "--json and --csv.");
  auto options = std::make_shared<Options>();
  command.add_option("run", options->runs, "Run folders (their best checkpoint) or checkpoints")
      ->required()
      ->type_name("RUN...");
  command.add_option("--out", options->out, "The page that is written")
      ->capture_default_str()
      ->type_name("FILE");
  command.add_option("--csv", options->csv, "Write every number into this file too")->type_name("FILE");
  Option* data =
      command.add_option("--data", options->data, "The data set's folder, if it is not that of the run");
  data->type_name("DIR");
  Option* split = command.add_option("--split", options->split, "validation or train");
  split->check(one_of({"validation", "train"}))->capture_default_str()->type_name("NAME");
  Option* images =
      command.add_option("--images", options->images, "Measure the first N images of the split; 0: all");
  images->check(non_negative())->capture_default_str()->type_name("N");
  command.add_option("--pictures", options->pictures, "Measure these files or folders instead")
      ->excludes(data)
      ->excludes(split)
      ->excludes(images)
      ->type_name("IMAGE...");
  command.add_option("--shown", options->shown, "Pictures on the page")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--query-row", options->query.row, "Where the query lies, 0 the top, 1 the bottom")
      ->check(between(0, 1))
      ->capture_default_str()
      ->type_name("SHARE");
  command.add_option("--query-column", options->query.column, "Where the query lies, 0 left, 1 right")
      ->check(between(0, 1))
      ->capture_default_str()
      ->type_name("SHARE");
  add_dtype(command, options->dtype, {DType::f32, DType::f64});
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
