#pragma once

#include <string>
#include <vector>

namespace tessera {

/// One key of a config: what its reader takes, and what it means.
struct ConfigKey {
  std::string path;      ///< as --set takes it: "optimizer.lr"; "optimizer.groups[].lr_scale" in a list
  std::string values;    ///< "a number above 0", "adamw or sgd"
  std::string fallback;  ///< where the key is left out: "0.003"; empty: it has no default
  std::string meaning;
  std::vector<std::string> architectures;  ///< of a model's key: those that know it
};

/// Every key of a config that holds a value or may be left out as a whole, object by object. Types, ranges,
/// choices and defaults are taken from the readers themselves, which are run with a record of what they ask
/// for; only the meanings are written down (config_meanings.h). `model.*` are the keys of all architectures.
std::vector<ConfigKey> config_keys();

/// The same with the objects that are always there, and with keys that nobody has written a meaning for.
std::vector<ConfigKey> all_config_keys();

}  // namespace tessera
