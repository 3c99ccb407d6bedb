#pragma once

#include <string>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// The names of all presets, by architecture.
std::vector<std::string> preset_names();
bool is_preset(const std::string& name);

/// The config of a preset for images of image_size x image_size pixels and num_classes classes. Fails for an
/// unknown name, with the nearest known one, and for a size that the preset cannot cut into patches.
Json preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
