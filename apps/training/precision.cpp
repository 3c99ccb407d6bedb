#include "apps/training/precision.h"

#include <fmt/format.h>

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

std::string bf16_advice(const Computing& computing, double times) {
  constexpr double worth_saying = 1.5;
  if (computing.device != Device::cpu || computing.precision != Precision::f32 || times < worth_saying)
    return "";
  return fmt::format("this processor multiplies in bf16 {:.1f} times as fast as in f32: --precision bf16",
                     times);
}

}  // namespace tessera
