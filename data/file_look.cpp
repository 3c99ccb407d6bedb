#include "data/file_look.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>

#include "data/formats/folder.h"
#include "data/formats/intact.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/io/file.h"

namespace tessera {

FileLook check_files(const Dataset& dataset, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  FileLook look;
  for (const Split* split : {dataset.train.get(), dataset.validation.get()}) {
    if (split->size() == 0 || !is_file(split->source(0))) continue;
    std::vector<std::string> failures(static_cast<size_t>(split->size()));
    std::atomic<int64_t> looked_at = 0;
    parallel_for(split->size(), 16, [&](int64_t begin, int64_t stop) {
      for (int64_t i = begin; i < stop && Clock::now() < end; ++i, ++looked_at) try {
          const std::string path = split->source(i);
          check_intact(read_bytes(path, max_image_file_bytes), path);
        } catch (const Error& error) {
          failures[static_cast<size_t>(i)] = error.what();
        }
    });
    look.files += split->size();
    look.looked_at += looked_at;
    std::ranges::copy_if(failures, std::back_inserter(look.damaged),
                         [](const std::string& failure) { return !failure.empty(); });
  }
  return look;
}

std::string expect_intact_files(const Dataset& dataset, double seconds) {
  const auto [files, looked_at, damaged] = check_files(dataset, seconds);
  constexpr size_t most_named = 20;
  if (!damaged.empty()) {
    std::string text;
    for (size_t i = 0; i < std::min<size_t>(most_named, damaged.size()); ++i) text += "\n" + damaged[i];
    if (damaged.size() > most_named) text += "\n...";
    fail(dataset.name, ": ", damaged.size(), " of ", files,
         " picture files cannot be read; replace or remove them:", text);
  }
  return looked_at == files ? ""
                            : std::to_string(looked_at) + " of " + std::to_string(files) +
                                  " picture files were looked at before the run, and are sound";
}

}  // namespace tessera
