#include "models/sdt.h"

#include <map>

namespace tessera {

namespace {

// sdt-h-t, sdt-h-s and sdt-h-b have the paper's sizes; sdt-xt is a smaller one for images of 32 or 64 pixels.
Json sdt_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  static const std::map<std::string, std::string> sizes{
      {"sdt-xt", "xt"}, {"sdt-h-t", "t"}, {"sdt-h-s", "s"}, {"sdt-h-b", "b"}};
  const Json gates{{"kind", "content"}, {"alpha", 1.0}, {"distance", true}};
  return decay_net_preset("sdt", sizes.at(name), 2, gates, image_size, num_classes);
}

}  // namespace

Architecture sdt_architecture() {
  return {"sdt", Task::classify, make_network<RMT>, {"sdt-xt", "sdt-h-t", "sdt-h-s", "sdt-h-b"}, sdt_preset};
}

}  // namespace tessera
