#include "models/presets.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "models/cait.h"
#include "models/dit.h"
#include "models/efficientnet.h"
#include "models/lvvit.h"
#include "models/pit.h"
#include "models/resnet.h"
#include "models/rmt.h"
#include "models/sdt.h"
#include "models/segment.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"

namespace tessera {

namespace {

// The presets of one model file. `patches`: how many a side it cuts the image into, 1 where any size will do.
struct Family {
  std::vector<std::string> names;
  Json (*make)(const std::string& name, int64_t image_size, int64_t num_classes);
  int64_t patches;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {{"resnet56", "resnet110"}, resnet_preset, 1},
      {{"efficientnet-b0"}, efficientnet_preset, 1},
      {{"vit", "t-vit", "m-vit", "l-vit", "s-vit", "sl-vit"}, vit_preset, 8},
      {{"pit", "s-pit", "l-pit", "sl-pit", "sl-pit-spool"}, pit_preset, 16},
      {{"swin", "s-swin", "l-swin", "sl-swin", "sl-swin-spool"}, swin_preset, 16},
      {{"cait", "s-cait", "l-cait", "sl-cait"}, cait_preset, 8},
      {{"t2t", "s-t2t", "l-t2t", "sl-t2t"}, t2t_preset, 1},
      {{"lvvit-s", "sp-vit-t", "sp-vit-s", "sp-vit-m", "sp-vit-l"}, lvvit_preset, 1},
      {{"lvvit-s-seg", "sp-vit-s-seg"}, segment_preset, 1},
      {{"rmt-xt", "rmt-t", "rmt-s", "rmt-b", "rmt-l"}, rmt_preset, 1},
      {{"sdt-xt", "sdt-h-t", "sdt-h-s", "sdt-h-b"}, sdt_preset, 1},
      {{"dit-s-2", "dit-s-2-decay", "dit-b-2", "dit-xt", "dit-xt-decay"}, dit_preset, 1},
  };
  return all;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.insert(names.end(), family.names.begin(), family.names.end());
  return names;
}

Json preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  for (const Family& family : families()) {
    Json config = family.make(name, image_size, num_classes);
    if (config.is_null()) continue;
    check(image_size >= family.patches && image_size % family.patches == 0, name, ": an image of ",
          image_size, " pixels is not cut into ", family.patches, " x ", family.patches,
          " patches; the size must be a multiple of ", family.patches);
    return config;
  }
  fail("models: no preset '", name, "'", did_you_mean(name, preset_names()),
       "; `tessera models` lists them all");
}

}  // namespace tessera
