#include "models/presets.h"

#include "engine/core/error.h"
#include "models/vit.h"

namespace tessera {

std::vector<std::string> preset_names() { return {"vit", "t-vit", "m-vit", "l-vit", "s-vit", "sl-vit"}; }

Json preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  if (Json config = vit_preset(name, image_size, num_classes); !config.is_null()) {
    check(image_size >= 8 && image_size % 8 == 0, name, ": an image of ", image_size,
          " pixels is not cut into 8 x 8 ", "patches; the size must be a multiple of 8");
    return config;
  }
  fail("models: no preset '", name, "'", did_you_mean(name, preset_names()),
       "; `tessera models` lists them all");
}

}  // namespace tessera
