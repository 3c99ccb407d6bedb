#pragma once

#include <span>

namespace tessera {

/// What a key of a config means. `values` and `fallback` are given only where the reader computes them from
/// other keys or reads the value by hand; null: as the reader has them.
struct ConfigMeaning {
  const char *path, *meaning;
  const char* values = nullptr;
  const char* fallback = nullptr;
};

/// One for each key that holds a value, of a run and of its model ("model.dim"), and one for each object that
/// may be left out altogether. A test fails for a key without a meaning, and for a meaning without a key.
std::span<const ConfigMeaning> meanings_of_training();
std::span<const ConfigMeaning> meanings_of_models();

}  // namespace tessera
