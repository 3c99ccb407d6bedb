#include "apps/training/precision.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

namespace {

const std::vector<std::string> names{"f32", "tf32", "bf16"};

}  // namespace

std::string_view name(Precision precision) { return names[static_cast<size_t>(precision)]; }

Precision precision_of(const std::string& text) {
  const auto at = std::find(names.begin(), names.end(), text);
  check(at != names.end(), "--precision '", text, "' is not one of f32, tf32, bf16",
        did_you_mean(text, names));
  return static_cast<Precision>(at - names.begin());
}

}  // namespace tessera
