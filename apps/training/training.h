#pragma once

// The public headers of tessera::training: <tessera/training.h>; see engine/engine.h.

#include "apps/training/batch_norm.h"
#include "apps/training/checkpoint.h"
#include "apps/training/config.h"
#include "apps/training/evaluation.h"
#include "apps/training/interrupt.h"
#include "apps/training/precision.h"
#include "apps/training/recipe.h"
#include "apps/training/run_folder.h"
#include "apps/training/run_parts.h"
#include "apps/training/session.h"
#include "apps/training/step.h"
#include "apps/training/task.h"
#include "apps/training/train.h"
#include "apps/training/trainer.h"
#include "apps/training/validation.h"
