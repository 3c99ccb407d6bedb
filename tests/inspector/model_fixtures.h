#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "apps/inspector/page.h"
#include "apps/inspector/pass.h"
#include "engine/io/safetensors.h"

namespace tessera {

// The fixtures of whole models, by name.
inline std::map<std::string, std::filesystem::path> model_fixtures() {
  std::map<std::string, std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_FIXTURES)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto metadata = read_safetensors(entry.path()).metadata;
    const auto config = metadata.find("config");
    if (config != metadata.end() && parse_json(config->second, "config").contains("arch"))
      found[entry.path().stem().string()] = entry.path();
  }
  return found;
}

// Writes the page of a pass, as tessera inspect does, without proofs.
inline void write_page_of(const PassInputs& inputs, const InspectedPass& pass,
                          const std::filesystem::path& path) {
  Page page{.title = path.stem().string()};
  page.passes.push_back(page_pass(inputs, pass));
  write_page(page, path);
}

}  // namespace tessera
