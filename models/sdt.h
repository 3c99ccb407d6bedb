#pragma once

#include "models/rmt.h"

namespace tessera {

// The Spatial Decay Transformer (Mao et al., 2025): RMT's network with a decay that gates compute from the
// tokens (kind "content", context-aware gating). Its sizes, rotary positions and lepe are RMT's; the first
// two stages decompose, the last two attend over all pairs. papers/sdt-rmt-dit-facts.md tells what is the
// paper's and what is chosen.

// sdt-h-t, sdt-h-s, sdt-h-b; sdt-xt for images of 32 or 64 pixels; an empty Json for another name.
Json sdt_preset(const std::string& name, int64_t image_size, int64_t num_classes);

// The paper's ablations: `config` with another attention.decay. "content" (the gate times the distance),
// "content-no-distance" (the gate alone), "distance" (the distance, all heads alike), "fixed" (RMT's rates)
// or "none". Fails for another name.
Json sdt_ablation(Json config, const std::string& name);
std::vector<std::string> sdt_ablations();

}  // namespace tessera
