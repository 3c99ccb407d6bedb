#pragma once

// The public headers of tessera::data: <tessera/data.h>; see engine/engine.h.

#include "data/augment/mix.h"
#include "data/augment/options.h"
#include "data/augment/pipeline.h"
#include "data/check.h"
#include "data/dataset.h"
#include "data/fetch/fetch.h"
#include "data/file_look.h"
#include "data/formats/image.h"
#include "data/loader.h"
#include "data/memory_dataset.h"
#include "data/registry.h"
#include "data/sampler.h"
#include "data/subset.h"
#include "data/token_labels.h"
