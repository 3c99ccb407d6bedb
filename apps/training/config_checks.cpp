#include "apps/training/config_checks.h"

#include "apps/training/augment_config.h"
#include "data/registry.h"
#include "engine/core/error.h"

namespace tessera {

void check_schedule(const TrainConfig& c, const std::string& where) {
  check(c.schedule.min_lr <= c.optimizer.lr, where, ": schedule.min_lr ", c.schedule.min_lr,
        " is above optimizer.lr ", c.optimizer.lr);
  check(c.schedule.warmup_lr <= c.optimizer.lr, where, ": schedule.warmup_lr ", c.schedule.warmup_lr,
        " is above optimizer.lr ", c.optimizer.lr);
  const double given = c.schedule.warmup_epochs + c.schedule.cooldown_epochs;
  check(c.steps > 0 || given <= static_cast<double>(c.epochs), where, ": schedule.warmup_epochs ",
        c.schedule.warmup_epochs, c.schedule.cooldown_epochs > 0 ? " and cooldown_epochs" : "",
        " is more than all ", c.epochs, " epochs; give --epochs or ", "--set schedule.warmup_epochs=N");
}

void check_no_key_is_idle(const TrainConfig& c, const std::string& where) {
  check(c.checkpoint.keep == 0 || c.checkpoint.every_epochs > 0, where, ": checkpoint.keep is ",
        c.checkpoint.keep, ", but no epoch's weights are kept; give checkpoint.every_epochs too");
  check(!holds_latents(c.data.name) || to_json(c.augment) == to_json(no_augmentation), where,
        ": augment changes pictures, and ", c.data.name, " are what an encoder made of them; leave it out");
  check(c.schedule.decay != "none" || c.schedule.cooldown_epochs == 0, where,
        ": schedule.cooldown_epochs is ", c.schedule.cooldown_epochs,
        ", but schedule.decay is none, which never reaches min_lr; leave one of them out");
}

}  // namespace tessera
