#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/dit.h"

namespace tessera {

namespace {

struct Variant {
  int64_t dim, depth, heads, patch_size, in_channels;
  bool learn_sigma, decay;
};

// The paper's sizes, each with patches of 2, 4 and 8, with and without SDT's decay, on an autoencoder's
// latents (4 channels); and dit-xt, ours, on pixels.
const std::map<std::string, Variant>& variants() {
  static const std::map<std::string, Variant> all = [] {
    struct Size {
      const char* name;
      int64_t dim, depth, heads;
    };
    std::map<std::string, Variant> made{{"dit-xt", {192, 8, 6, 4, 3, false, false}},
                                        {"dit-xt-decay", {192, 8, 6, 4, 3, false, true}}};
    for (const Size& size :
         {Size{"s", 384, 12, 6}, Size{"b", 768, 12, 12}, Size{"l", 1024, 24, 16}, Size{"xl", 1152, 28, 16}})
      for (const int64_t patch : {2, 4, 8})
        for (const bool decay : {false, true})
          made["dit-" + std::string(size.name) + "-" + std::to_string(patch) + (decay ? "-decay" : "")] = {
              size.dim, size.depth, size.heads, patch, 4, true, decay};
    return made;
  }();
  return all;
}

// By size, the smallest first.
std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const auto& [name, variant] : variants()) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const Variant &x = variants().at(a), &y = variants().at(b);
    return x.dim != y.dim ? x.dim < y.dim : x.patch_size < y.patch_size;
  });
  return names;
}

Json dit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const Variant& v = variants().at(name);
  Json attention{{"heads", v.heads}, {"head_dim", v.dim / v.heads}, {"qkv_bias", true}};
  if (v.decay) attention["decay"] = {{"kind", "content"}, {"alpha", 1.0}, {"distance", true}};
  return {{"arch", "dit"},
          {"image_size", image_size},
          {"in_channels", v.in_channels},
          {"num_classes", num_classes},
          {"dim", v.dim},
          {"depth", v.depth},
          {"mlp_ratio", 4.0},
          {"tokenizer", {{"kind", "patch"}, {"patch_size", v.patch_size}}},
          {"attention", attention},
          {"learn_sigma", v.learn_sigma},
          {"label_dropout", 0.1},
          {"time_dim", 256},
          {"steps", 1000}};
}

}  // namespace

Architecture dit_architecture() {
  return {"dit", Task::diffuse, make_network<DiT>, variant_names(), dit_preset};
}

}  // namespace tessera
