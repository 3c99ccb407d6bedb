#pragma once

// The public headers of tessera::models: <tessera/models.h>; see engine/engine.h.

#include "models/cait.h"
#include "models/diffusion.h"
#include "models/dit.h"
#include "models/efficientnet.h"
#include "models/lvvit.h"
#include "models/model.h"
#include "models/pit.h"
#include "models/presets.h"
#include "models/resnet.h"
#include "models/rmt.h"
#include "models/sdt.h"
#include "models/segment.h"
#include "models/segment_inference.h"
#include "models/swin.h"
#include "models/t2t.h"
#include "models/vit.h"
#include "models/weights.h"
