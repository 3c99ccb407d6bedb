#include <fmt/format.h>

#include <build_facts.h>
#include "apps/options/command_tree.h"
#include "engine/core/device.h"
#include "engine/cpu/processor.h"

namespace tessera {

std::string version_text() {
  return fmt::format(
      "tessera {}, commit {}\n"
      "compiler    {}\n"
      "built with  {}{}\n"
      "processor   {}; f32 kernels: {} (TESSERA_CPU names another kind)",
      TESSERA_VERSION, TESSERA_COMMIT, TESSERA_COMPILER, TESSERA_FOUND, has_cuda ? ", CUDA" : "",
      name(processor()), kernels_in_use());
}

}  // namespace tessera
