#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::house {

struct Source {
  std::string path;  // from the repo root, "engine/ops/norm.cpp"
  std::string text;
};

// Every .h, .cpp, .cu and .cuh below engine, models, data and apps.
std::vector<Source> read_sources(const std::filesystem::path& root);

// What breaks the layer rule, one line each: "data/sets/idx.cpp:3: data may not include "models/vit.h"
// (...)".
// - a file includes only its own layer and those that its layer may see, by paths from the repo root;
// - files that hold kernels (_kernels.h, _cpu.cpp, _cuda.cu) know no Tensor;
// - CUDA's and engine/cuda's headers are for _cuda.cu and engine/cuda alone;
// - engine/core/device.h alone asks the preprocessor for CUDA;
// - engine and models include no library but OpenBLAS, oneTBB and nlohmann/json.
std::vector<std::string> layer_breaches(std::span<const Source> sources);

// Top-level entries that the design does not have; dotfiles, build folders and run folders do not count.
std::vector<std::string> stray_entries(const std::filesystem::path& root);

// Files of the tree of more than `limit` bytes.
std::vector<std::string> large_files(const std::filesystem::path& root, std::uintmax_t limit);

}  // namespace tessera::house
