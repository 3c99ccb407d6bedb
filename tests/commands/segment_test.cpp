#include <doctest/doctest.h>

#include <algorithm>

#include "data/formats/image.h"
#include "tests/commands/program.h"
#include "tests/data/formats/grey_png.h"

using namespace tessera;

namespace {

const std::string tiny_segmenter = R"({
  "arch": "segment",
  "backbone": {"arch": "lvvit", "num_classes": 0, "dim": 16, "depth": 4, "mlp_ratio": 2.0,
               "tokenizer": {"kind": "conv_stem", "patch_size": 4, "channels": 8},
               "attention": {"heads": 2, "head_dim": 8}},
  "decoder": {"kind": "upernet", "out_blocks": [0, 1, 2, 3], "top_channels": 16, "channels": 8,
              "pool_scales": [1, 2], "dropout": 0.1},
  "aux": {"level": 2, "channels": 8, "dropout": 0.1, "weight": 0.4}})";

Said train_tiny(const TemporaryFolder& folder, const std::string& more = "",
                const std::string& dataset = "shapes-seg") {
  put(folder / "tiny.json", tiny_segmenter);
  return tessera_program("train --model " + (folder / "tiny.json").string() + " --dataset " + dataset +
                         " --image-size 16 --epochs 3 --batch 16 --seed 4 --set data.train_images=48"
                         " --set data.validation_images=20 --set schedule.warmup_epochs=0 --set eval_every=2"
                         " --out " +
                         (folder / "run").string() + " " + more);
}

}  // namespace

TEST_CASE("a segmenter begins with a classifier, says so, and eval refuses the classifier in its place") {
  const TemporaryFolder folder;
  put(folder / "backbone.json", R"({"arch": "lvvit", "dim": 16, "depth": 4, "mlp_ratio": 2.0,
    "tokenizer": {"kind": "conv_stem", "patch_size": 4, "channels": 8}, "attention": {"heads": 2, "head_dim": 8}})");
  const std::string classifier = (folder / "classifier").string();
  const Said first = tessera_program("train --dataset shapes --image-size 16 --epochs 1 --batch 16 --model " +
                                     (folder / "backbone.json").string() +
                                     " --set data.train_images=32 --set data.validation_images=10"
                                     " --set schedule.warmup_epochs=0 --out " +
                                     classifier);
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  const Said said = train_tiny(folder, "--init " + classifier + " --stop-after 1");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("a classifier's, for the backbone; its head is left out") != std::string::npos);
  put(folder / "whole.json", R"({"image_size": 16, "num_classes": 6,)" + tiny_segmenter.substr(1));
  CHECK(tessera_program("eval --weights " + classifier + "/best.safetensors --model " +
                        (folder / "whole.json").string() + " --dataset shapes-seg")
            .complains_of("a classifier's, for the backbone"));
}

TEST_CASE("a segmenter trains on masks and is judged by its pixels") {
  const TemporaryFolder folder;
  const Said said = train_tiny(folder);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("Done in f32: best mean IoU") != std::string::npos);
  CHECK(said.out.find("top-1") == std::string::npos);

  const std::string metrics = bytes_of(folder / "run" / "metrics.csv");
  CHECK(metrics.find("validation_top5,validation_mean_iou,validation_pixel_accuracy\n") != std::string::npos);
  CHECK(metrics.find(",,,,\n") != std::string::npos);            // the epoch that is not evaluated
  CHECK(std::count(metrics.begin(), metrics.end(), ',') == 44);  // 12 columns in 4 lines

  const std::string run = (folder / "run").string();
  const Said eval = tessera_program("eval " + run + " --json");
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  const auto result = eval.json();
  CHECK(result["images"] == 20);
  CHECK(result["mean_iou"] > 0);
  CHECK(result["mean_iou"] < 1);
  CHECK(result["pixel_accuracy"] > 0.2);
  REQUIRE(result["classes"].size() == 6);
  CHECK(result["classes"][0]["name"] == "background");
  CHECK(result["classes"][0]["iou"] > 0.2);
  // Pictures as large as a window, at one scale, are judged as in training.
  const auto sliding = tessera_program("eval " + run + " --sliding --json").json();
  CHECK(sliding["mean_iou"] == result["mean_iou"]);
  CHECK(sliding["pixel_accuracy"] == result["pixel_accuracy"]);
  CHECK(sliding["mean_class_accuracy"] > 0.1);
  CHECK(!sliding.contains("loss"));
  const Said scales = tessera_program("eval " + run + " --sliding --scales 1,1.5 --flip --stride 8");
  CHECK(scales.out.find("mean class accuracy") != std::string::npos);
  check_refused("eval " + run + " --sliding --scales 3 --stride 20", "a stride of at most 16 is wanted");
  CHECK(tessera_program("eval " + run + " --flip").code == 2);
  const Said table = tessera_program("eval " + run);
  CHECK(table.out.find("mean IoU") != std::string::npos);
  CHECK(table.out.find("triangle") != std::string::npos);

  const std::string html = bytes_of(folder / "run" / "report.html");
  for (const char* part : {">Mean IoU<", "Fewest right pixels", "of the pixels right", "background"})
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  std::filesystem::remove(folder / "run" / "report.html");
  REQUIRE(tessera_program("report " + run).code == 0);
  CHECK(bytes_of(folder / "run" / "report.html") == html);
  const std::string pictures = (folder / "pictures.csv").string();
  REQUIRE(tessera_program("eval " + run + " --images-csv " + pictures).code == 0);
  const std::string list = bytes_of(pictures);
  CHECK(list.starts_with("picture,source,right_pixels\n0,"));
  CHECK(std::count(list.begin(), list.end(), '\n') == 21);

  const Said predict = tessera_program("predict " + run + " any.png");
  CHECK(predict.code == 2);
  CHECK(predict.complains_of("a class to each pixel"));
}

TEST_CASE("a segmentation run that is broken off ends with the same bytes") {
  const TemporaryFolder whole, parts;
  REQUIRE(train_tiny(whole).code == 0);
  REQUIRE(train_tiny(parts, "--stop-after 4 --threads 1").code == 0);
  REQUIRE(tessera_program("train --resume " + (parts / "run").string()).code == 0);
  check_same_end(whole / "run", parts / "run");
}

TEST_CASE(
    "scene crops and photometric distortion: the same bytes on resuming, and refused where they make no "
    "sense") {
  const std::string augment =
      "--set 'augment.scene_crop={\"scale\":[0.5,2]}' --set 'augment.photometric={}'"
      " --set augment.crop_padding=0";
  const TemporaryFolder whole, parts, plain;
  REQUIRE(train_tiny(whole, augment).code == 0);
  REQUIRE(train_tiny(parts, augment + " --stop-after 4 --threads 1").code == 0);
  REQUIRE(tessera_program("train --resume " + (parts / "run").string()).code == 0);
  check_same_end(whole / "run", parts / "run");
  REQUIRE(train_tiny(plain, "--set augment.crop_padding=0").code == 0);
  CHECK(bytes_of(plain / "run" / "metrics.csv") != bytes_of(whole / "run" / "metrics.csv"));

  const auto refuses = [&](const std::string& more, const std::string& why) {
    const TemporaryFolder folder;
    const Said said = train_tiny(folder, more);
    CAPTURE(said.err);
    CHECK((said.code == 2 && said.complains_of(why)));
  };
  refuses(augment + " --set 'augment.resized_crop={}'", "give one of them");
  refuses("--set 'augment.scene_crop={\"scale\":[2,1]}'",
          "augment.scene_crop.scale is no [smallest, largest]");
  refuses("--set 'augment.scene_crop={\"scale\":[0,1]}'", "augment.scene_crop.scale");
  refuses("--set 'augment.photometric={\"hues\":3}'", "hue");
  check_refused("train --dataset shapes --model vit --set 'augment.scene_crop={}' --out " +
                    (plain / "classifier").string(),
                "these have none");
}

TEST_CASE("segmenters and masks go together only") {
  const TemporaryFolder folder;
  const Said unmasked = train_tiny(folder, "", "shapes");
  CHECK(unmasked.code == 2);
  CHECK(unmasked.complains_of("no class for each pixel"));
  const Said classifier =
      tessera_program("train --model vit --dataset shapes-seg --out " + (folder / "run").string());
  CHECK(classifier.code == 2);
  CHECK(classifier.complains_of("a segmenter is trained on it"));
  CHECK(!std::filesystem::exists(folder / "run"));
}

TEST_CASE("a segmenter trains on pictures and annotations in ADE20K's folders") {
  const TemporaryFolder folder;
  for (const std::string split : {"training", "validation"})
    for (uint8_t i = 0; i < 8; ++i) {
      const std::filesystem::path images = folder.path() / "images" / split,
                                  annotations = folder.path() / "annotations" / split;
      std::filesystem::create_directories(images);
      std::filesystem::create_directories(annotations);
      const std::string name = "ADE_" + std::to_string(i);
      std::vector<uint8_t> classes(20 * 24);
      for (size_t p = 0; p < classes.size(); ++p) classes[p] = p % 24 < 12 ? 3 : i % 4 == 0 ? 0 : 148;
      Image picture(20, 24);
      for (size_t p = 0; p < picture.pixels.size(); ++p)
        picture.pixels[p] = static_cast<uint8_t>(classes[p / 3] == 3 ? 220 : 20);
      write_png(images / (name + ".jpg"), picture);
      const std::vector<uint8_t> bytes = png_of(20, 24, classes);
      put(annotations / (name + ".png"), std::string(bytes.begin(), bytes.end()));
    }
  const Said said = train_tiny(folder,
                               "--data " + folder.path().string() +
                                   " --set data.train_images=0 --set data.validation_images=0 --set batch=4"
                                   " --set epochs=12 --set eval_every=12 --set optimizer.lr=0.01",
                               "ade20k");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const Said eval =
      tessera_program("eval " + (folder / "run").string() + " --data " + folder.path().string() + " --json");
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  CHECK(eval.json()["images"] == 8);
  CHECK(eval.json()["classes"].size() == 150);
  CHECK(eval.json()["pixel_accuracy"] > 0.8);
  CHECK(tessera_program("train --dataset ade20k --model vit --data " + folder.path().string())
            .complains_of("segmenter"));
}
