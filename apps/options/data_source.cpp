#include "apps/options/data_source.h"

#include "data/registry.h"

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

}  // namespace tessera
