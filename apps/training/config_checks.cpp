#include "apps/training/config_checks.h"

#include <sstream>

#include "apps/training/augment_config.h"
#include "data/registry.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// The warm-up, and the cool-down if there is one, fill all epochs. Those of `steps` depend on the data.
bool never_decays(const TrainConfig& c) {
  const ScheduleConfig& s = c.schedule;
  return c.steps == 0 && s.decay != "none" && s.warmup_epochs > 0 &&
         s.warmup_epochs + s.cooldown_epochs == static_cast<double>(c.epochs);
}

}  // namespace

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

std::vector<std::string> doubts_about(const TrainConfig& c) {
  std::vector<std::string> doubts;
  if (never_decays(c)) {
    std::ostringstream text;
    text << "schedule.warmup_epochs " << c.schedule.warmup_epochs;
    if (c.schedule.cooldown_epochs > 0)
      text << " and schedule.cooldown_epochs " << c.schedule.cooldown_epochs << " take";
    else
      text << " takes";
    text << " the whole run (epochs " << c.epochs << "), so the learning rate never decays; a smaller "
         << "--set schedule.warmup_epochs=N leaves it time to";
    doubts.push_back(text.str());
  }
  if (c.init.expected && c.init.weights.empty())
    doubts.emplace_back(
        "this recipe is meant to start from trained weights, --init FILE; without them it trains from "
        "scratch");
  return doubts;
}

}  // namespace tessera
