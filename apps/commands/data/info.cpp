// tessera data info: what a data set holds.

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/data_source.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "data/file_look.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

struct Options {
  DataSource source;
  int image_size = 0;
  bool json = false;
};

constexpr double most_seconds = 5;  // of the look at the picture files

constexpr Column summary_columns[] = {
    {"name", "data set"},
    {"train", "training images", as_integer},
    {"validation", "validation images", as_integer},
    {"image_shape", "image", as_shape},
    {"classes", "classes", as_integer},
    {"mean", "mean"},
    {"deviation", "deviation"},
    {"latent_scale", "scale"},
};

constexpr Column class_columns[] = {
    {"index", "class", as_integer},
    {"train", "training", as_integer},
    {"validation", "validation", as_integer},
    {"name", "name"},
};

// As short as tells the floats apart: 0.26, not 0.2599999904632568.
std::vector<double> decimals(const std::array<float, 3>& values) {
  std::vector<double> shortest;
  for (const float value : values) shortest.push_back(std::stod(fmt::format("{}", value)));
  return shortest;
}

Json describe(const Dataset& data) {
  Json classes = Json::array();
  const std::vector<int64_t> train = class_counts(*data.train, data.classes());
  const std::vector<int64_t> validation = class_counts(*data.validation, data.classes());
  for (size_t k = 0; k < data.class_names.size(); ++k)
    classes.push_back(
        {{"index", k}, {"name", data.class_names[k]}, {"train", train[k]}, {"validation", validation[k]}});
  Json info{{"name", data.name},
            {"train", data.train->size()},
            {"validation", data.validation->size()},
            {"image_shape", std::vector<int64_t>(data.image_shape.begin(), data.image_shape.end())},
            {"mean", decimals(data.normalisation.mean)},
            {"deviation", decimals(data.normalisation.deviation)},
            {"latent_scale", data.latent_scale},
            {"notes", data.notes},
            {"classes", classes}};
  for (const char* key : {"mean", "deviation"})
    if (data.latent_scale > 0) info.erase(key);
  if (data.latent_scale == 0) info.erase("latent_scale");
  return info;
}

void print_for_people(Json info) {
  const Json classes = info["classes"], notes = info["notes"], damaged = info["damaged"];
  info["classes"] = classes.size();
  std::vector<Column> columns;
  for (const Column& column : summary_columns)
    if (info.contains(column.key)) columns.push_back(column);
  print_record(columns, info);
  for (const Json& note : notes) fmt::print("\nNote: {}\n", printable(note.get<std::string>()));
  fmt::print("\n");
  print_table(class_columns, classes);
  if (!damaged.empty()) fmt::print("\n{} picture files cannot be read:\n", damaged.size());
  for (const Json& each : damaged) fmt::print("  {}\n", printable(each.get<std::string>()));
}

ExitCode show_info(const Options& options) {
  DatasetOptions how = options.source.options();
  how.image_size = options.image_size;
  check_folder(options.source.name, options.source.folder);
  const Dataset dataset = open_dataset(options.source.name, options.source.folder, how);
  Json info = describe(dataset);
  const FileLook look = check_files(dataset, most_seconds);
  info["damaged"] = look.damaged;
  if (look.looked_at < look.files)
    info["notes"].push_back(fmt::format("{} of {} picture files were looked at", look.looked_at, look.files));
  if (options.json)
    print_json(info);
  else
    print_for_people(info);
  return ExitCode::done;
}

}  // namespace

void add_data_info(Command& data) {
  Command& command =
      add_command(data, "info", "What a data set holds: splits, classes and their counts, image size.",
                  {"tessera data info shapes", "tessera data info cifar10 cifar-10-batches-bin",
                   "tessera data info folder photos --image-size 64 --json"});
  const auto options = std::make_shared<Options>();
  add_source(command, options->source);
  command.add_option("--image-size", options->image_size, "Pixels a side; default: the data set's own")
      ->check(positive())
      ->type_name("N");
  add_json(command, options->json);
  on_run(command, [options] { return show_info(*options); });
}

}  // namespace tessera
