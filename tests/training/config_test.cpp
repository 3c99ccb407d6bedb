#include "apps/training/config.h"
#include "apps/training/config_checks.h"

#include <doctest/doctest.h>

#include "apps/training/former_config.h"
#include "apps/training/recipe.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

std::string refusal(const std::string& text) {
  return error_of([&] { read_train_config(parse_json(text, "test"), "test"); });
}

}  // namespace

TEST_CASE("a config is read back as it was written") {
  TrainConfig config;
  config.model = {{"preset", "vit"}, {"dim", 96}};
  config.data.name = "shapes";
  config.batch = 17;
  config.optimizer.groups = {{"*.bias", 0.0, 1}, {"head.*", std::nullopt, 0.5}, {"*", 0.0, 1, 1}};
  config.schedule.warmup_epochs = 0.25;
  config.repetitions = 3;
  config.augment.autoaugment = "svhn";
  config.augment.erasing = {.probability = 0.5, .min_ratio = 0.2, .log_ratio = true};
  config.augment.erasing.fill = ErasingOptions::Fill::noise;
  config.augment.resized_crop = ResizedCropOptions{.min_area = 0.2, .filter = Filter::bicubic};
  config.augment.randaugment = RandAugmentOptions{.operations = 3, .magnitude = 7};
  config.epoch_multiple = 256;
  config.schedule.decay = "linear";
  config.schedule.warmup_lr = 1e-5;
  config.schedule.cooldown_epochs = 2;
  config.augment.mix = {.mixup = 0.8, .cutmix = 1, .probability = 0.9, .cutmix_share = 0.25};
  config.micro_batch = 8;
  config.batch_norm = BatchNormStatistics::micro_batch;
  const Json written = to_json(config);
  CHECK(written.at("micro_batch") == 8);
  CHECK(written.at("batch_norm") == "micro_batch");
  CHECK(to_json(read_train_config(written, "test")) == written);
  config.optimizer.kind = "sgd";
  config.optimizer.nesterov = true;
  CHECK(to_json(read_train_config(to_json(config), "test")) == to_json(config));
}

TEST_CASE("a warm-up as long as the run, and fine-tuning without weights, are doubtful but no error") {
  const auto doubts = [](const char* text) {
    return doubts_about(read_train_config(parse_json(text, "test"), "test"));
  };
  CHECK(doubts("{}").empty());
  CHECK(doubts(R"({"epochs": 10, "schedule": {"warmup_epochs": 10}})") ==
        std::vector<std::string>{
            "schedule.warmup_epochs 10 takes the whole run (epochs 10), so the learning "
            "rate never decays; a smaller --set schedule.warmup_epochs=N leaves it time to"});
  const auto both = doubts(R"({"epochs": 15, "schedule": {"warmup_epochs": 5, "cooldown_epochs": 10}})");
  REQUIRE(both.size() == 1);
  CHECK(both[0].find("5 and schedule.cooldown_epochs 10 take the whole run (epochs 15)") !=
        std::string::npos);
  CHECK(doubts(R"({"epochs": 10, "schedule": {"warmup_epochs": 10, "decay": "none"}})").empty());
  CHECK(doubts(R"({"epochs": 10, "steps": 9, "schedule": {"warmup_epochs": 10}})").empty());
  CHECK(doubts(R"({"init": {"expected": true}})").size() == 1);
  CHECK(doubts(R"({"init": {"expected": true, "weights": "a.safetensors"}})").empty());
}

TEST_CASE("what a config must not hold is named with its key") {
  CHECK(refusal(R"({"epoch": 3})").find("did you mean 'epochs'") != std::string::npos);
  CHECK(refusal(R"({"data": {"nmae": "shapes"}})").find("data.nmae") != std::string::npos);
  CHECK(refusal(R"({"optimizer": {"momentum": 0.9}})").find("optimizer.momentum") != std::string::npos);
  CHECK(refusal(R"({"optimizer": {"kind": "adam"}})").find("adamw") != std::string::npos);
  CHECK(refusal(R"({"optimizer": {"betas": [0.9]}})").find("wanted 2") != std::string::npos);
  CHECK(refusal(R"({"optimizer": {"lr": 1e-7}})").find("schedule.min_lr") != std::string::npos);
  CHECK(refusal(R"({"optimizer": {"lr": 1e-4}, "schedule": {"warmup_lr": 1e-3}})").find("warmup_lr") !=
        std::string::npos);
  CHECK(refusal(R"({"epochs": 12, "schedule": {"warmup_epochs": 10, "cooldown_epochs": 3}})")
            .find("cooldown_epochs") != std::string::npos);
  CHECK(refusal(R"({"augment": {"randaugment": {"magnitude": 11}}})").find("augment.randaugment.magnitude") !=
        std::string::npos);
  CHECK(refusal(R"({"augment": {"resized_crop": {"filter": "nearest"}}})").find("bilinear") !=
        std::string::npos);
  CHECK(refusal(R"({"epochs": 5, "schedule": {"warmup_epochs": 10}})").find("warmup_epochs") !=
        std::string::npos);
  CHECK(refusal(R"({"watch": {"every_steps": -1}})").find("watch.every_steps") != std::string::npos);
  CHECK(refusal(R"({"watch": {"every_step": 50}})").find("did you mean 'every_steps'") != std::string::npos);
  CHECK(refusal(R"({"batch": 0})").find("batch") != std::string::npos);
  CHECK(refusal(R"({"smoothing": 2})").find("smoothing") != std::string::npos);
  CHECK(refusal(R"({"model": 3})").find("model") != std::string::npos);
  CHECK(refusal(R"({"model": {"preset": "vit", "arch": "vit"}})").find("model") != std::string::npos);
  CHECK(refusal(R"({"augment": {"autoaugment": "cifar"}})").find("cifar10") != std::string::npos);
  CHECK(refusal(R"({"augment": {"erasing": {"area": [0.4, 0.1]}}})").find("augment.erasing.area") !=
        std::string::npos);
  CHECK(refusal(R"({"augment": {"mixup": -1}})").find("augment.mixup") != std::string::npos);
  CHECK(refusal(R"({"model": "dit-xt", "augment": {"mixup": 1}})").find("a diffusion model cannot") !=
        std::string::npos);
  CHECK(refusal(R"({"model": {"preset": 5}})").find("model is a preset's name") != std::string::npos);
  CHECK(refusal(R"({"model": {"arch": 5}})").find("model is a preset's name") != std::string::npos);
  CHECK(refusal(R"({"model": "vitt"})").find("test: models: no preset 'vitt'") == 0);
  CHECK(refusal(R"({"optimizer": {"betas": [1, 0.9]}})") == "test: optimizer.betas must be below 1");
  CHECK(refusal(R"({"optimizer": {"betas": [0.9, 1]}})") == "test: optimizer.betas must be below 1");
  CHECK(refusal(R"({"optimizer": {"groups": [{"weight_decay": 0}]}})").find("pattern is missing") !=
        std::string::npos);
  for (const char* key : {"resize_positions", "fresh_head"})
    CHECK(refusal(std::string(R"({"init": {")") + key + "\": true}}") ==
          "test: resize_positions and fresh_head say how weights are read; give their file too");
  CHECK(refusal(R"({"init": {"weights": "x", "fresh_head": true, "resize_positions": true}})").empty());
  CHECK(refusal(R"({"model": "lvvit-s-seg", "augment": {"cutmix": 1}})").find("which a segmenter cannot") !=
        std::string::npos);
  CHECK(refusal(R"({"model": "dit-xt", "smoothing": 0.1})").find("there is no label to smooth") !=
        std::string::npos);
  CHECK(refusal(R"({"data": {"name": "latents"}, "augment": {"flip": true}})")
            .find("augment changes pictures") != std::string::npos);
  CHECK(refusal("{}").empty());
}

TEST_CASE("groups are of a pattern, or of so many dimensions, and say what is different in them") {
  const auto groups = [](const char* text) {
    return to_json(read_train_config(parse_json(text, "test"), "test"))["optimizer"]["groups"];
  };
  CHECK(groups(R"({"optimizer": {"groups": [{"dimensions": 1}, {"pattern": "head.*", "lr_scale": 2,
                   "weight_decay": 0}]}})") ==
        Json{{{"pattern", "*"}, {"lr_scale", 1.0}, {"dimensions", 1}},
             {{"pattern", "head.*"}, {"lr_scale", 2.0}, {"weight_decay", 0.0}}});
}

TEST_CASE("a model's name is that of its preset or architecture, and data are opened for its task") {
  TrainConfig config;
  CHECK(model_name(config) == "sl-vit");
  config.model = {{"arch", "vit"}};
  CHECK(model_name(config) == "vit");
  config.preset = "own";
  CHECK(model_name(config) == "own");
  const auto opened = [](const char* name, Task task) {
    DataConfig data;
    data.name = name;
    data.image_size = 16;
    data.train_images = data.validation_images = 10;
    return error_of([&] { open_data(data, task); });
  };
  CHECK(opened("shapes", Task::classify) == "");
  CHECK(opened("shapes", Task::diffuse) == "");
  CHECK(opened("shapes-seg", Task::segment) == "");
  CHECK(opened("shapes", Task::segment).find("shapes has no class for each pixel") != std::string::npos);
  CHECK(opened("shapes-seg", Task::classify).find("shapes-seg gives a class to each pixel") !=
        std::string::npos);
}

TEST_CASE("only a whole config with an architecture and no batch_norm is one of before") {
  Json document = to_json(TrainConfig());
  document["model"] = {{"arch", "vit"}};
  document.erase("batch_norm");
  CHECK(written_before_batch_norm(document));
  for (const char* key : {"about", "batch", "data", "clip", "checkpoint", "model"}) {
    CAPTURE(key);
    Json part = document;
    part.erase(key);
    CHECK_FALSE(written_before_batch_norm(part));
  }
  document["batch_norm"] = "batch";
  CHECK_FALSE(written_before_batch_norm(document));
  CHECK_FALSE(written_before_batch_norm({{"model", {{"preset", "vit"}}}}));
  CHECK_FALSE(written_before_batch_norm(Json::object()));
}

TEST_CASE("a key that would have no effect is refused with the reason") {
  CHECK(refusal(R"({"checkpoint": {"keep": 3}})") ==
        "test: checkpoint.keep is 3, but no epoch's weights are kept; give checkpoint.every_epochs too");
  CHECK(refusal(R"({"checkpoint": {"keep": 3, "every_epochs": 10}})").empty());
  CHECK(refusal(R"({"schedule": {"decay": "none", "cooldown_epochs": 5}})") ==
        "test: schedule.cooldown_epochs is 5, but schedule.decay is none, which never reaches min_lr; leave "
        "one "
        "of them out");
}

TEST_CASE("a micro-batch is a number of images, or what suits the device") {
  const auto micro_batch = [](const char* text) {
    return read_train_config(parse_json(text, "test"), "test").micro_batch;
  };
  CHECK(micro_batch("{}") == std::nullopt);
  CHECK(micro_batch(R"({"micro_batch": "auto"})") == std::nullopt);
  CHECK(micro_batch(R"({"micro_batch": 0})") == 0);
  CHECK(micro_batch(R"({"micro_batch": 7})") == 7);
  CHECK(refusal(R"({"micro_batch": "all"})") == R"(test: micro_batch is "all", wanted a number or "auto")");
  CHECK(refusal(R"({"micro_batch": -1})") == "test: micro_batch is -1, wanted an integer from 0 to 1000000");
  CHECK(refusal(R"({"batch_norm": "none"})") == "test: batch_norm is 'none'; there are batch, micro_batch");
  CHECK(to_json(TrainConfig()).at("micro_batch") == "auto");
}

TEST_CASE("a run's config from before the key batch_norm means what it did") {
  const auto former = [](const char* model, int64_t micro_batch) {
    Json config = to_json(TrainConfig());
    config["model"] = parse_json(model, "model");
    config["micro_batch"] = micro_batch;
    config.erase("batch_norm");
    return read_train_config(config, "config.json");
  };
  const char* const resnet =
      R"({"arch": "resnet", "image_size": 8, "num_classes": 3, "depth": 8, "width": 4})";
  const char* const vit = R"({"arch": "vit", "image_size": 8, "num_classes": 3, "dim": 8, "depth": 1,
    "tokenizer": {"kind": "patch", "patch_size": 4}, "attention": {"heads": 2}})";
  CHECK(former(resnet, 64).micro_batch == 0);
  CHECK(former(resnet, 16).micro_batch == 0);
  CHECK(former(resnet, 16).batch_norm == BatchNormStatistics::batch);
  CHECK(former(vit, 64).micro_batch == std::nullopt);
  CHECK(former(vit, 16).micro_batch == 16);
}

TEST_CASE("the warm-up is a tenth of the epochs, 10 at most, unless the config says how long") {
  const auto warmup = [](const char* text) {
    return read_train_config(parse_json(text, "test"), "test").schedule.warmup_epochs;
  };
  CHECK(warmup("{}") == 10);
  CHECK(warmup(R"({"epochs": 300})") == 10);
  CHECK(warmup(R"({"epochs": 1})") == doctest::Approx(0.1));
  CHECK(warmup(R"({"epochs": 20, "schedule": {"min_lr": 0}})") == doctest::Approx(2));
  CHECK(warmup(R"({"epochs": 20, "schedule": {"warmup_epochs": 10}})") == 10);
}

TEST_CASE("keys are set at any depth, as JSON or as text") {
  Json config{{"model", "vit"}, {"batch", 3}};
  set_key(config, "optimizer.lr=0.5");
  set_key(config, "model.dim=96");
  set_key(config, "data.dir=/some where/a=b");
  set_key(config, "augment.flip=false");
  CHECK(config["optimizer"]["lr"] == 0.5);
  CHECK(config["model"] == Json{{"preset", "vit"}, {"dim", 96}});
  CHECK(config["data"]["dir"] == "/some where/a=b");
  CHECK(config["augment"]["flip"] == false);
  set_key(config, "optimizer.betas=[0.9,0.99]");
  set_key(config, "optimizer.kind=sgd");  // takes away what SGD does not know
  CHECK(config["optimizer"] == Json{{"lr", 0.5}, {"kind", "sgd"}});
  set_key(config, "schedule.kind=other");  // an object without kinds
  set_key(config, "kind=top");
  set_key(config, "name=top");
  CHECK(
      (config["schedule"] == Json{{"kind", "other"}} && config["kind"] == "top" && config["name"] == "top"));
  CHECK_THROWS_WITH_AS(set_key(config, "batch.size=3"),
                       "--set batch.size=3: batch is 3, not an object with keys", Error);
  CHECK_THROWS_WITH_AS(set_key(config, "batch"), doctest::Contains("--set 'batch': wanted key=value"), Error);
  CHECK_THROWS_WITH_AS(set_key(config, "=3"), doctest::Contains("--set '=3': wanted key=value"), Error);
}

TEST_CASE("another data set drops the keys that it does not have") {
  const Json imagenet{{"name", "imagenet"},       {"image_size", 32},      {"test_crop", 0.9},
                      {"test_filter", "bicubic"}, {"coarse_labels", true}, {"latent_scale", 2}};
  const auto data_of = [&](const std::string& name) {
    Json config{{"data", imagenet}};
    set_key(config, "data.name=" + name);
    return config["data"];
  };
  CHECK(data_of("shapes") == Json{{"name", "shapes"}, {"image_size", 32}});
  CHECK(data_of("cifar100") == Json{{"name", "cifar100"}, {"image_size", 32}, {"coarse_labels", true}});
  CHECK(data_of("latents") == Json{{"name", "latents"}, {"image_size", 32}, {"latent_scale", 2}});
  CHECK(data_of("folder") ==
        Json{{"name", "folder"}, {"image_size", 32}, {"test_crop", 0.9}, {"test_filter", "bicubic"}});
  CHECK(data_of("no-such-set").size() == imagenet.size());
}

TEST_CASE("a model takes size and classes from the data") {
  Dataset dataset;
  dataset.name = "some";
  dataset.image_shape = {3, 32, 32};
  dataset.class_names = {"a", "b", "c"};
  const Json model =
      resolve_model({{"preset", "sl-vit"}, {"dim", 64}, {"attention", {{"heads", 4}}}}, dataset);
  CHECK(model["image_size"] == 32);
  CHECK(model["num_classes"] == 3);
  CHECK(model["dim"] == 64);
  CHECK(model["attention"]["heads"] == 4);
  CHECK(model["attention"]["scale"] == "learned");  // what is not named stays
  CHECK(resolve_model(model, dataset) == model);
  CHECK_THROWS_WITH_AS(resolve_model({{"arch", "vit"}, {"num_classes", 4}}, dataset),
                       "model: num_classes is 4, some has 3", Error);
  CHECK_THROWS_WITH_AS(resolve_model({{"preset", "sl-vti"}}, dataset),
                       doctest::Contains("models: no preset 'sl-vti'; did you mean"), Error);
}
