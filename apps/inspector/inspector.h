#pragma once

// The public headers of tessera::inspector: <tessera/inspector.h>; see engine/engine.h.

#include "apps/inspector/tape_page.h"
