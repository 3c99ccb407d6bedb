#pragma once

#include "models/rmt.h"

namespace tessera {

/// The Spatial Decay Transformer (Mao et al., 2025): RMT's network with a decay computed from the tokens
/// (kind "content", the paper's context-aware gating). The paper leaves sizes, rotary positions and lepe
/// open; they are RMT's here. The presets' first two stages are decomposed, the last two attend over all
/// pairs. The paper's ablations are configs with another "attention.decay": "distance": false (the gate
/// alone), kind "distance" (the distance alone), kind "fixed" (RMT's rates), or none.
Architecture sdt_architecture();

}  // namespace tessera
