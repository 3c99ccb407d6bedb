#include "models/sdt.h"

#include <map>

namespace tessera {

namespace {

Json gated(bool distance) { return {{"kind", "content"}, {"alpha", 1.0}, {"distance", distance}}; }

}  // namespace

Json sdt_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  static const std::map<std::string, std::string> sizes{
      {"sdt-xt", "xt"}, {"sdt-h-t", "t"}, {"sdt-h-s", "s"}, {"sdt-h-b", "b"}};
  const auto size = sizes.find(name);
  if (size == sizes.end()) return {};
  return decay_net_preset("sdt", size->second, 2, gated(true), image_size, num_classes);
}

std::vector<std::string> sdt_ablations() {
  return {"content", "content-no-distance", "distance", "fixed", "none"};
}

Json sdt_ablation(Json config, const std::string& name) {
  const std::map<std::string, Json> decays{{"content", gated(true)},
                                           {"content-no-distance", gated(false)},
                                           {"distance", {{"kind", "distance"}, {"alpha", 1.0}}},
                                           {"fixed", fixed_decay_config({4, 4, 6, 6})},
                                           {"none", nullptr}};
  const auto decay = decays.find(name);
  if (decay == decays.end()) fail("sdt: no ablation '", name, "'", did_you_mean(name, sdt_ablations()));
  config.at("attention")["decay"] = decay->second;
  return config;
}

}  // namespace tessera
