#include "apps/training/config.h"

#include <algorithm>

#include "apps/training/augment_config.h"
#include "apps/training/config_checks.h"
#include "apps/training/former_config.h"
#include "data/registry.h"
#include "engine/core/error_place.h"
#include "models/kinds.h"

namespace tessera {

namespace {

constexpr const char* automatic = "auto";  // a micro_batch that suits the device
const Range share = Range::between(0, 1);
const Range at_least_0 = Range::at_least(0);
// Bounds within which the steps of a run can be counted in 64 bits.
const Range epoch_count = Range::between(1, 1e6), repeats = Range::between(1, 1000),
            step_count = Range::between(0, 1e12);

GroupRule read_group(Fields f) {
  GroupRule g;
  if (f.has("dimensions")) g.dimensions = f.get<int64_t>("dimensions", at_least_0);
  g.pattern = g.dimensions ? f.get("pattern", "*") : f.get<std::string>("pattern");
  g.lr_scale = f.get("lr_scale", g.lr_scale, at_least_0);
  if (f.has("weight_decay")) g.weight_decay = f.get<double>("weight_decay", at_least_0);
  f.done();
  return g;
}

// A rule's own keys are known to that rule alone: "momentum" for adamw is an error.
OptimizerConfig read_optimizer(Fields f) {
  OptimizerConfig o;
  o.kind = f.choice("kind", {"adamw", "sgd"}, "adamw");
  o.lr = f.get("lr", o.lr, Range::above(0));
  o.weight_decay = f.get("weight_decay", o.weight_decay, at_least_0);
  if (o.kind == "adamw") {
    const auto betas = f.get<std::vector<double>>("betas", {o.beta1, o.beta2}, share);
    if (betas.size() != 2) f.fail_at("betas", "has ", betas.size(), " numbers, wanted 2");
    o.beta1 = betas[0];
    o.beta2 = betas[1];
    if (o.beta1 == 1 || o.beta2 == 1) f.fail_at("betas", "must be below 1");
    o.eps = f.get("eps", o.eps, Range::above(0));
  } else {
    o.momentum = f.get("momentum", o.momentum, share);
    o.nesterov = f.get("nesterov", o.nesterov);
  }
  for (Fields& group : f.objects("groups")) o.groups.push_back(read_group(std::move(group)));
  f.done();
  return o;
}

// `usual` holds the defaults.
ScheduleConfig read_schedule(Fields f, const ScheduleConfig& usual) {
  ScheduleConfig s = usual;
  s.decay = f.choice("decay", {"cosine", "linear", "none"}, "cosine");
  s.warmup_epochs = f.get("warmup_epochs", s.warmup_epochs, at_least_0);
  s.min_lr = f.get("min_lr", s.min_lr, at_least_0);
  s.warmup_lr = f.get("warmup_lr", s.min_lr, at_least_0);
  s.cooldown_epochs = f.get("cooldown_epochs", s.cooldown_epochs, at_least_0);
  f.done();
  return s;
}

InitConfig read_init(Fields f) {
  InitConfig i;
  i.weights = f.get<std::string>("weights", i.weights);
  i.resize_positions = f.get("resize_positions", i.resize_positions);
  i.fresh_head = f.get("fresh_head", i.fresh_head);
  i.expected = f.get("expected", i.expected);
  f.done();
  check(!i.weights.empty() || (!i.resize_positions && !i.fresh_head), f.where(),
        ": resize_positions and fresh_head say how weights are read; give their file too");
  return i;
}

CheckpointConfig read_checkpoint(Fields f) {
  CheckpointConfig c;
  c.every_steps = f.get("every_steps", c.every_steps, step_count);
  c.every_minutes = f.get("every_minutes", c.every_minutes, at_least_0);
  c.every_epochs = f.get("every_epochs", c.every_epochs, step_count);
  c.keep = f.get("keep", c.keep, step_count);
  f.done();
  return c;
}

WatchConfig read_watch(Fields f) {
  WatchConfig w;
  w.every_steps = f.get("every_steps", w.every_steps, step_count);
  f.done();
  return w;
}

// An object with neither "preset" nor "arch" says what differs from the default preset.
Json read_model(Fields& f, const Json& otherwise) {
  const Json* model = f.find("model");
  if (!model) return otherwise;
  if (model->is_string()) return {{"preset", *model}};
  const auto names = [&](const char* key) { return model->is_object() && model->contains(key); };
  const char* key = names("arch") ? "arch" : "preset";
  const bool clear = !names(key) || model->at(key).is_string();
  if (!model->is_object() || (names("preset") && names("arch")) || !clear)
    f.fail_at("model", "is a preset's name, an object with \"preset\" and what differs from it, or a whole ",
              "config with \"arch\"");
  if (names(key)) return *model;
  Json changed = otherwise;
  changed.update(*model);
  return changed;
}

Json to_json(const OptimizerConfig& o) {
  Json json{{"kind", o.kind}, {"lr", o.lr}, {"weight_decay", o.weight_decay}};
  if (o.kind == "adamw")
    json.update({{"betas", {o.beta1, o.beta2}}, {"eps", o.eps}});
  else
    json.update({{"momentum", o.momentum}, {"nesterov", o.nesterov}});
  json["groups"] = Json::array();
  for (const GroupRule& g : o.groups) {
    Json group{{"pattern", g.pattern}, {"lr_scale", g.lr_scale}};
    if (g.weight_decay) group["weight_decay"] = *g.weight_decay;
    if (g.dimensions) group["dimensions"] = *g.dimensions;
    json["groups"].push_back(group);
  }
  return json;
}

}  // namespace

TrainConfig::TrainConfig() : model({{"preset", "sl-vit"}}) {}

TrainConfig read_train_config(const Json& document, const std::string& where) {
  TrainConfig c;
  Fields f(document, where);
  c.about = f.get<std::string>("about", c.about);
  c.model = read_model(f, c.model);
  c.preset = f.get<std::string>("preset", c.preset);
  if (auto init = f.find_object("init")) c.init = read_init(*init);
  if (auto data = f.find_object("data")) c.data = read_data_config(*data);
  const Task task = with_place(where, [&] { return task_of(c.model); });
  if (task != Task::classify) c.smoothing = 0;
  if (task == Task::diffuse) c.augment.crop_padding = 0;
  if (holds_latents(c.data.name)) c.augment = no_augmentation;
  if (auto augment = f.find_object("augment")) c.augment = read_augment(*augment, c.augment);
  if (task != Task::classify && c.augment.mix.any())
    fail(where, ": augment.mixup and augment.cutmix mix pictures of two classes, which a ",
         task == Task::diffuse ? "diffusion model" : "segmenter", " cannot learn from");
  c.batch = f.get("batch", c.batch, Range::between(1, 1e6));
  if (const Json* micro = f.find("micro_batch"); micro && *micro != Json(automatic)) {
    if (micro->is_string()) f.fail_at("micro_batch", "is ", micro->dump(), ", wanted a number or \"auto\"");
    c.micro_batch = f.get<int64_t>("micro_batch", Range::between(0, 1e6));
  }
  c.batch_norm = static_cast<BatchNormStatistics>(f.choice("batch_norm", {"batch", "micro_batch"}, "batch") ==
                                                  "micro_batch");
  c.epochs = f.get("epochs", c.epochs, epoch_count);
  c.steps = f.get("steps", c.steps, step_count);
  c.passes = f.get("passes", c.passes, repeats);
  c.repetitions = f.get("repetitions", c.repetitions, repeats);
  c.epoch_multiple = f.get("epoch_multiple", c.epoch_multiple, Range::between(1, 1e9));
  if (auto optimizer = f.find_object("optimizer")) c.optimizer = read_optimizer(*optimizer);
  c.schedule.warmup_epochs = std::min(c.schedule.warmup_epochs, static_cast<double>(c.epochs) / 10);
  if (auto schedule = f.find_object("schedule")) c.schedule = read_schedule(*schedule, c.schedule);
  c.clip = f.get("clip", c.clip, at_least_0);
  c.smoothing = f.get("smoothing", c.smoothing, share);
  if (task == Task::diffuse && c.smoothing > 0)
    f.fail_at("smoothing", "is ", c.smoothing,
              "; a diffusion model is told one class, there is no label to smooth");
  c.ema = f.get("ema", c.ema, share);
  c.eval_every = f.get("eval_every", c.eval_every, epoch_count);
  c.patience = f.get("patience", c.patience, step_count);
  if (auto checkpoint = f.find_object("checkpoint")) c.checkpoint = read_checkpoint(*checkpoint);
  if (auto watch = f.find_object("watch")) c.watch = read_watch(*watch);
  c.tensorboard = f.get("tensorboard", c.tensorboard);
  c.seed = f.get("seed", c.seed, at_least_0);
  f.done();
  if (written_before_batch_norm(document))
    keep_former_meaning(c);
  else
    check_no_key_is_idle(c, where);
  check_schedule(c, where);
  return c;
}

Json to_json(const TrainConfig& c) {
  return {{"about", c.about},
          {"model", c.model},
          {"preset", c.preset},
          {"init",
           {{"weights", c.init.weights},
            {"resize_positions", c.init.resize_positions},
            {"fresh_head", c.init.fresh_head},
            {"expected", c.init.expected}}},
          {"data", to_json(c.data)},
          {"augment", to_json(c.augment)},
          {"batch", c.batch},
          {"micro_batch", c.micro_batch ? Json(*c.micro_batch) : Json(automatic)},
          {"batch_norm", c.batch_norm == BatchNormStatistics::batch ? "batch" : "micro_batch"},
          {"epochs", c.epochs},
          {"steps", c.steps},
          {"passes", c.passes},
          {"repetitions", c.repetitions},
          {"epoch_multiple", c.epoch_multiple},
          {"optimizer", to_json(c.optimizer)},
          {"schedule",
           {{"decay", c.schedule.decay},
            {"warmup_epochs", c.schedule.warmup_epochs},
            {"warmup_lr", c.schedule.warmup_lr},
            {"min_lr", c.schedule.min_lr},
            {"cooldown_epochs", c.schedule.cooldown_epochs}}},
          {"clip", c.clip},
          {"smoothing", c.smoothing},
          {"ema", c.ema},
          {"eval_every", c.eval_every},
          {"patience", c.patience},
          {"checkpoint",
           {{"every_steps", c.checkpoint.every_steps},
            {"every_minutes", c.checkpoint.every_minutes},
            {"every_epochs", c.checkpoint.every_epochs},
            {"keep", c.checkpoint.keep}}},
          {"watch", {{"every_steps", c.watch.every_steps}}},
          {"tensorboard", c.tensorboard},
          {"seed", c.seed}};
}

std::string model_name(const TrainConfig& config) {
  if (!config.preset.empty()) return config.preset;
  return config.model.at(config.model.contains("preset") ? "preset" : "arch").get<std::string>();
}

}  // namespace tessera
