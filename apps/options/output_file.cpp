#include "apps/options/output_file.h"

#include "apps/training/run_folder.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

void expect_output(const std::string& option, const std::filesystem::path& path) {
  if (path.empty()) return;
  check(!is_file_of_run(path), option, " ", path.string(),
        ": is a file of a training run, which would be lost; give another name or folder");
  expect_writable(path);
}

}  // namespace tessera
