#include "apps/precision.h"

#include <CLI/CLI.hpp>

#include "engine/core/error.h"

namespace tessera {

namespace {

const std::vector<std::string> names{"f32", "tf32", "bf16"};

}  // namespace

std::string_view name(Precision precision) { return names[static_cast<size_t>(precision)]; }

void add_precision(CLI::App& command, Precision& precision) {
  const auto choose = [&precision](const std::string& text) {
    const auto at = std::find(names.begin(), names.end(), text);
    check(at != names.end(), "--precision '", text, "' is not one of f32, tf32, bf16",
          did_you_mean(text, names));
    precision = static_cast<Precision>(at - names.begin());
  };
  command
      .add_option_function<std::string>(
          "--precision", choose, "What it computes in: f32, tf32 (a GPU's products) or bf16; weights are f32")
      ->type_name("NAME");
}

}  // namespace tessera
