#include "apps/options/data_source.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/registry.h"
#include "engine/io/json.h"

namespace tessera {

void add_source(Command& command, DataSource& source) {
  std::string known;
  for (const std::string& name : dataset_names()) known += (known.empty() ? "" : ", ") + name;
  command.add_option("name", source.name, known)->required()->type_name("NAME");
  Option* dir = command.add_option("dir", source.folder,
                                   "The folder that the data set's archive unpacks, or its parent");
  dir->type_name("DIR");
  command.add_option("--data", source.folder, "The same as DIR")->type_name("DIR")->excludes(dir);
  command.add_flag("--coarse-labels", source.coarse_labels, "cifar100: the 20 superclasses");
}

std::string data_folder_of(const Checkpoint& checkpoint) {
  const std::filesystem::path config = checkpoint.path.parent_path() / "config.json";
  if (!std::filesystem::is_regular_file(config)) return "";
  const Json document = read_json(config);
  const Json data = document.is_object() ? document.value("data", Json()) : Json();
  const Json dir = data.is_object() ? data.value("dir", Json()) : Json();
  return dir.is_string() ? dir.get<std::string>() : "";
}

}  // namespace tessera
