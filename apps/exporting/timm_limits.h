#pragma once

#include "engine/io/json.h"

namespace tessera {

// Fails, naming the key and the reason, for a model's config that timm has no modules for: shifted patches,
// learned scales, masks, priors, decay, positions of Swin, and networks that timm does not have.
void check_timm_has(const Json& config);

// A value of an object, where the stages that have one each agree. Fails where they do not.
Json same_for_stages(const Json& object, const char* key);

}  // namespace tessera
