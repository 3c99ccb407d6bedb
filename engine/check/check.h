#pragma once

// The public headers of tessera::check: gradients against finite differences. <tessera/check.h>; see
// engine/engine.h.

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
