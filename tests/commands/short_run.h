#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/commands/program.h"

namespace tessera {

// 6 steps an epoch that take moments.
inline const std::string tiny =
    " --dataset shapes --image-size 16 --model sl-vit --seed 5"
    " --set data.train_images=96 --set data.validation_images=40 --set model.dim=16 --set model.depth=2"
    " --set 'model.attention={\"heads\":2,\"head_dim\":8}'";

inline Said train(const TemporaryFolder& folder, const std::string& more) {
  return tessera_program("train --out " + (folder / "run").string() + tiny + " " + more);
}

// The events of a run, or what --json prints of them.
inline std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

}  // namespace tessera
