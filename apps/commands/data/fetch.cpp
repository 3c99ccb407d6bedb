#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "apps/training/progress.h"
#include "data/fetch/fetch.h"
#include "data/registry.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

struct Options {
  std::string name, folder, mirror;
  bool keep = false;
};

const DatasetEntry& published_set(const std::string& name) {
  const DatasetEntry& entry = find_dataset(name);
  check(entry.published.has_value(), name,
        entry.needs_folder ? ": is a folder of your own" : ": is made in memory", "; nothing to fetch");
  return entry;
}

ExitCode run(const Options& options) {
  const DatasetEntry& set = published_set(options.name);
  Progress progress;
  FetchOptions how{.mirror = options.mirror, .keep_archive = options.keep};
  how.on_progress = [&](const std::string& file, int64_t done, int64_t total) {
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    progress.show(fmt::format("{} {} {} of {}", file, bar(share, 24), as_bytes(done),
                              total > 0 ? as_bytes(total) : std::string("?")));
  };
  const auto [root, already_there] = fetch(set, options.folder, how);
  progress.clear();
  fmt::print("{}: {} in {}\n", set.name, already_there ? "already there," : "fetched, verified and unpacked",
             root.string());
  return ExitCode::done;
}

}  // namespace

void add_data_fetch(Command& data) {
  Command& command = add_command(
      data, "fetch", "Download a data set, verify and unpack it.",
      {"tessera data fetch cifar10 data",
       "tessera data fetch mnist data/mnist --url http://mirror.local/mnist"},
      "A download that was broken off goes on where it stopped. What is there already is left alone.");
  const auto options = std::make_shared<Options>();
  std::string known;
  for (const DatasetEntry& entry : datasets())
    if (entry.published) known += (known.empty() ? "" : ", ") + entry.name;
  command.add_option("name", options->name, known)->required()->type_name("NAME");
  command.add_option("dir", options->folder, "The folder to put it in; made if need be")
      ->required()
      ->type_name("DIR");
  command.add_option("--url", options->mirror, "A mirror that has the files under their names")
      ->check(web_address())
      ->type_name("BASE");
  command.add_flag("--keep", options->keep, "Keep the archive after it was unpacked");
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
