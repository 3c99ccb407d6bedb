#include "apps/training/recipe.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "apps/training/config.h"
#include "apps/training/config_checks.h"
#include "apps/training/step.h"
#include "engine/core/dispatch.h"
#include "models/model.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

TrainConfig recipe(const std::string& name) { return read_train_config(read_recipe(name), "recipe " + name); }

Model model_of(const TrainConfig& config) {
  const DryRun dry;  // shapes alone
  return build(resolve_model(config.model, expected_data(config.data)));
}

}  // namespace

TEST_CASE("every recipe is a whole config, its model fits its data, its groups take parameters") {
  std::set<std::string> names;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    CAPTURE(built_in.name);
    CHECK(names.insert(built_in.name).second);
    const TrainConfig config = recipe(built_in.name);
    CHECK(to_json(read_train_config(to_json(config), "again")) == to_json(config));
    CHECK(config.about == built_in.about);
    CHECK(!config.about.empty());
    CHECK(config.data.dir.empty());
    const Model model = model_of(config);
    const bool normed = has_batch_norm(model);
    CHECK(built_in.document.contains("batch_norm") == normed);
    CHECK((!normed || built_in.document.contains("micro_batch")));
    check_step_options(model, {.micro_batch = config.micro_batch, .batch_norm = config.batch_norm},
                       config.batch);
    make_groups(trainable(model.parameters), config.optimizer.weight_decay, config.optimizer.groups);
    CHECK(list_of_recipes().find("\n  " + built_in.name + " ") != std::string::npos);
  }
  CHECK(names.size() > 100);
  CHECK(recipe("resnet56-cifar10").micro_batch == 0);
  CHECK(recipe("rmt-s-imagenet").batch_norm == BatchNormStatistics::micro_batch);
  for (const char* quick : {"demo", "sl-vit-cifar10-quick", "sl-vit-tiny-imagenet-quick", "speedrun-cifar10"})
    CHECK(names.contains(quick));
}

TEST_CASE("the regime of the small data sets") {
  const std::map<std::string, std::string> policies{
      {"cifar10", "cifar10"}, {"cifar100", "cifar10"}, {"svhn", "svhn"}, {"tiny-imagenet", "imagenet"}};
  for (const char* model :
       {"resnet56", "resnet110", "efficientnet-b0", "vit",          "s-vit",  "l-vit",        "sl-vit",
        "t2t",      "s-t2t",     "l-t2t",           "sl-t2t",       "cait",   "s-cait",       "l-cait",
        "sl-cait",  "pit",       "s-pit",           "l-pit",        "sl-pit", "sl-pit-spool", "swin",
        "s-swin",   "l-swin",    "sl-swin",         "sl-swin-spool"})
    for (const auto& [dataset, policy] : policies) {
      const std::string name = std::string(model) + "-" + dataset;
      CAPTURE(name);
      const TrainConfig c = recipe(name);
      const bool b0 = model == std::string("efficientnet-b0");
      CHECK(c.model ==
            (b0 ? Json{{"preset", model}, {"dropout", 0.0}, {"drop_path", 0.1}} : Json{{"preset", model}}));
      CHECK(c.data.name == dataset);
      CHECK((c.batch == 128 && c.epochs == 100 && c.passes == 3 && c.repetitions == 1));
      CHECK((c.augment.flip && c.augment.crop_padding == 4 && c.augment.autoaugment == policy));
      const ErasingOptions& e = c.augment.erasing;
      CHECK((e.probability == 0.25 && e.min_area == 0.02 && e.max_area == 0.4 && e.min_ratio == 0.3));
      CHECK((e.fill == ErasingOptions::Fill::mean && !e.log_ratio));
      const MixOptions& m = c.augment.mix;
      CHECK((m.mixup == 1 && m.cutmix == 1 && m.probability == 0.5 && m.cutmix_share == 0.5));
      const std::string kind(model);
      const bool high =
          kind.ends_with("vit") || kind.starts_with("resnet") || kind.starts_with("efficientnet");
      CHECK(c.optimizer.lr == (high ? 0.003 : 0.001));
      CHECK((c.optimizer.kind == "adamw" && c.optimizer.weight_decay == 0.05 && c.optimizer.groups.empty()));
      CHECK((c.optimizer.beta1 == 0.9 && c.optimizer.beta2 == 0.999 && c.optimizer.eps == 1e-8));
      CHECK((c.clip == 0 && c.ema == 0 && c.smoothing == 0.1));
      CHECK((c.schedule.decay == "cosine" && c.schedule.warmup_epochs == 10 && c.schedule.min_lr == 1e-6));
      CHECK((c.schedule.warmup_lr == 1e-6 && c.schedule.cooldown_epochs == 0));
    }
  CHECK(recipe("sl-vit-tiny-imagenet").about.ends_with("the paper: 61.07 %"));
}

TEST_CASE("stochastic depth: constant in ViT, PiT and CaiT, linear in Swin and T2T") {
  for (const auto& [name, rule] : std::map<std::string, std::string>{{"sl-vit-svhn", "constant"},
                                                                     {"pit-svhn", "constant"},
                                                                     {"cait-svhn", "constant"},
                                                                     {"swin-svhn", "linear"},
                                                                     {"t2t-svhn", "linear"}}) {
    const TrainConfig c = recipe(name);
    const Json model = resolve_model(c.model, expected_data(c.data));
    CHECK(model.at("drop_path") == 0.1);
    CHECK(model.at("drop_path_rule") == rule);
  }
}

TEST_CASE("recipes: those that fine-tune ask for weights, and none has a doubtful schedule") {
  for (const BuiltInRecipe& each : built_in_recipes()) {
    CAPTURE(each.name);
    const bool fine_tunes = each.name.ends_with("-384") || each.name.ends_with("-ade20k");
    CHECK(doubts_about(recipe(each.name)).size() == (fine_tunes ? 1 : 0));
  }
}

TEST_CASE("ImageNet: SL-ViT's Table 3, SP-ViT and RMT as their papers train") {
  const TrainConfig sl = recipe("sl-vit-imagenet");
  CHECK((sl.batch == 256 && sl.optimizer.lr == 0.00025 && sl.schedule.warmup_epochs == 5));
  CHECK((sl.augment.resized_crop && !sl.augment.flip && sl.augment.autoaugment == "imagenet"));
  CHECK(sl.model.at("attention").at("heads") == 3);
  for (const char* tiny : {"vit", "s-vit", "l-vit", "sl-vit"}) {
    CAPTURE(tiny);
    const Json model = recipe(std::string(tiny) + "-imagenet").model;
    CHECK(model.at("preset") == tiny);
    CHECK((model.at("norm_eps") == 1e-6 && model.at("attention").at("qkv_bias") == true));
  }
  // DeiT-Ti's parameters (5.717 M) and Swin-T's, whose biases timm counts as we do.
  CHECK(model_of(recipe("vit-imagenet")).parameters.trainable_count() == 5717416);
  CHECK(model_of(recipe("swin-imagenet")).parameters.trainable_count() == 28288354);

  const TrainConfig sp = recipe("sp-vit-s-imagenet");
  CHECK((sp.batch == 1024 && sp.optimizer.lr == 0.0016 && sp.epochs == 310 && sp.ema == 0.99992));
  CHECK((sp.schedule.warmup_lr == 1e-6 && sp.schedule.min_lr == 1e-5 && sp.schedule.cooldown_epochs == 10));
  CHECK((!sp.augment.mix.any() && sp.augment.randaugment->magnitude == 9));
  CHECK(sp.augment.erasing.fill == ErasingOptions::Fill::noise);
  const TrainConfig large = recipe("sp-vit-l-imagenet");
  CHECK((large.batch == 800 && large.optimizer.lr == 0.0006 && large.augment.randaugment->operations == 3));
  const TrainConfig finer = recipe("sp-vit-s-imagenet-384");
  CHECK((finer.data.image_size == 384 && finer.epochs == 30 && finer.optimizer.lr == 5e-6));
  CHECK((finer.optimizer.weight_decay == 1e-8 && finer.schedule.decay == "none" &&
         finer.schedule.warmup_epochs == 0));
  CHECK(recipe("sp-vit-s-shared-imagenet-100").model.at("attention").at("prior").at("sharing") == "model");

  const TrainConfig rmt = recipe("rmt-s-imagenet");
  CHECK(
      (rmt.optimizer.lr == 0.002 && rmt.repetitions == 3 && rmt.epoch_multiple == 256 && rmt.epochs == 300));
  CHECK((rmt.augment.mix.mixup == 0.8 && rmt.augment.mix.cutmix == 1 && rmt.augment.mix.probability == 1));
  CHECK(rmt.optimizer.groups.at(0).dimensions == 1);
  const TrainConfig fixed = recipe("sdt-h-t-fixed-imagenet");
  const Json decay = resolve_model(fixed.model, expected_data(fixed.data)).at("attention").at("decay");
  CHECK(decay == Json{{"kind", "fixed"}, {"initial", 2.0}, {"range", {4, 4, 6, 6}}});

  const TrainConfig segment = recipe("sp-vit-s-seg-ade20k");
  CHECK((segment.steps == 160000 && segment.batch == 16 && segment.optimizer.lr == 6e-5));
  CHECK((segment.optimizer.weight_decay == 0.01 && segment.schedule.decay == "linear" &&
         segment.smoothing == 0));
  const auto& [scale_from, scale_to, longest, most_of_one_class] = *segment.augment.scene_crop;
  CHECK((scale_from == 0.5 && scale_to == 2 && longest == 4 && most_of_one_class == 0.75));
  CHECK((segment.augment.photometric->hue == 18 && segment.augment.photometric->brightness == 32 &&
         segment.augment.flip && !segment.augment.resized_crop && segment.augment.crop_padding == 0));

  const TrainConfig dit = recipe("dit-xt-cifar10");
  CHECK((dit.schedule.decay == "none" && dit.optimizer.weight_decay == 0 && dit.ema == 0.9999));
  const TrainConfig latent = recipe("dit-xl-2-decay-imagenet-latents");
  CHECK(
      (latent.steps == 400000 && latent.batch == 256 && latent.optimizer.lr == 1e-4 && latent.ema == 0.9999));
  CHECK((latent.schedule.decay == "none" && latent.data.latent_scale == 0.18215 && !latent.augment.flip));
  CHECK(model_of(latent).config.at("learn_sigma") == true);
}

TEST_CASE("ImageNet: test pictures are cropped as each paper's code crops them") {
  const auto check_crop = [](const std::string& name, int side, bool bicubic) {
    CAPTURE(name);
    const DataConfig data = recipe(name).data;
    CHECK(std::floor(static_cast<double>(data.image_size) / data.test_crop) == side);
    CHECK(test_fit(data).bicubic == bicubic);
  };
  for (const char* name : {"vit-imagenet", "sl-vit-imagenet", "sl-swin-imagenet"})
    check_crop(name, 255, false);
  for (const char* name : {"rmt-t-imagenet", "sdt-h-b-imagenet"}) check_crop(name, 256, true);
  for (const char* name : {"lvvit-s-imagenet", "sp-vit-s-imagenet", "sp-vit-s-layer-imagenet-100"})
    check_crop(name, 248, true);
  for (const char* name : {"lvvit-m-imagenet", "sp-vit-m-imagenet", "lvvit-l-imagenet", "sp-vit-l-imagenet"})
    check_crop(name, 224, true);
  check_crop("sp-vit-m-imagenet-384", 384, true);
}

TEST_CASE("recipes are listed, printed whole, and refused by the nearest name") {
  const Said list = tessera_program("train --list-recipes");
  CHECK(list.code == 0);
  CHECK(list.out == list_of_recipes());
  const Said printed =
      tessera_program("train --recipe sl-vit-tiny-imagenet --set augment.mixup=0.8 --print-config");
  CHECK(printed.code == 0);
  const TrainConfig config = read_train_config(parse_json(printed.out, "printed"), "printed");
  CHECK(config.augment.mix.mixup == 0.8);
  CHECK(config.augment.autoaugment == "imagenet");
  CHECK(to_json(config).dump(2) + "\n" == printed.out);
  const Said longer = tessera_program("train --recipe lvvit-s-seg-ade20k --epochs 5 --print-config");
  CHECK(longer.code == 2);
  CHECK(longer.err.find("ends after `steps`, 160000, however many epochs these are") != std::string::npos);
  const Said wrong = tessera_program("train --recipe sl-vit-tiny-imagnet");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("did you mean 'sl-vit-tiny-imagenet'") != std::string::npos);
}
