#include "models/presets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "models/architectures.h"

namespace tessera {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Architecture& row : architectures())
    names.insert(names.end(), row.presets.begin(), row.presets.end());
  return names;
}

bool is_preset(const std::string& name) {
  const std::vector<std::string> names = preset_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Json preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  for (const Architecture& row : architectures()) {
    if (std::find(row.presets.begin(), row.presets.end(), name) == row.presets.end()) continue;
    const int64_t patches = row.patches_per_side;
    check(image_size >= patches && image_size % patches == 0, name, ": an image of ", image_size,
          " pixels is not cut into ", patches, " x ", patches, " patches; the size must be a multiple of ",
          patches);
    return row.preset(name, image_size, num_classes);
  }
  fail("models: no preset '", name, "'", did_you_mean(name, preset_names()),
       "; `tessera models` lists them all");
}

}  // namespace tessera
