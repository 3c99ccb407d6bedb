#include <doctest/doctest.h>

#include "data/image.h"
#include "data/shapes.h"
#include "tests/apps/program.h"

using namespace tessera;

namespace {

// A checkpoint and two pictures to look at.
struct Trained {
  TemporaryFolder folder;
  std::string checkpoint = (folder / "run" / "last.safetensors").string();
  std::string star = (folder / "star.png").string(), wide = (folder / "wide.bmp.png").string();

  Trained() {
    const Said said = tessera_program(
        "train --dataset shapes --image-size 16 --epochs 1 --batch 16 --set data.train_images=32"
        " --set data.validation_images=10 --set model.dim=16 --set model.depth=2 --set "
        "schedule.warmup_epochs=0"
        " --out " +
        (folder / "run").string());
    REQUIRE(said.code == 0);
    write_png(star, draw_shape(3, 16, Random(1)).image);
    Image picture(20, 33);
    std::fill(picture.pixels.begin(), picture.pixels.end(), uint8_t{90});
    write_png(wide, picture);
  }
};

}  // namespace

TEST_CASE("predict names the likeliest classes of each picture") {
  const Trained trained;
  const Said said =
      tessera_program("predict " + trained.checkpoint + " " + trained.star + " " + trained.wide + " --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json();
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    REQUIRE(row["top"].size() == 5);
    double before = 1;
    for (const auto& each : row["top"]) {
      CHECK(each["probability"] <= before);
      before = each["probability"];
    }
  }
  const Said text = tessera_program("predict " + trained.checkpoint + " " + trained.star + " --top 10");
  CHECK(text.code == 0);
  for (const std::string& name : shape_names()) CHECK(text.out.find(name) != std::string::npos);
}

TEST_CASE("predict draws where the class token looks") {
  const Trained trained;
  const std::string to = (trained.folder / "looks").string();
  const std::string common =
      "predict " + trained.checkpoint + " " + trained.star + " " + trained.wide + " --json";
  const Said plain = tessera_program(common), said = tessera_program(common + " --overlay " + to);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  auto rows = said.json();
  for (auto& row : rows) {
    const Image picture = load_image(row["overlay"].get<std::string>());
    CHECK(picture.height == 224);
    CHECK(picture.width == 448);
  }
  CHECK(rows[0]["top"][0]["probability"].get<double>() ==
        doctest::Approx(plain.json()[0]["top"][0]["probability"].get<double>()).epsilon(1e-4));
}

TEST_CASE("predict and eval refuse what they cannot read, by its path") {
  const Trained trained;
  const auto refused = [](const std::string& arguments, const std::string& why) {
    CAPTURE(arguments);
    const Said said = tessera_program(arguments);
    CAPTURE(said.err);
    CHECK(said.code == 2);
    CHECK(said.complains_of(why));
  };
  put(trained.folder / "broken.jpg", "\xff\xd8\xff\xe0 no picture");
  put(trained.folder / "broken.safetensors", "no tensors");
  refused("predict " + trained.checkpoint + " " + (trained.folder / "broken.jpg").string(), "broken.jpg");
  refused("predict " + trained.checkpoint + " " + (trained.folder / "absent.png").string(), "absent.png");
  refused("predict " + (trained.folder / "broken.safetensors").string() + " " + trained.star,
          "broken.safetensors");
  refused("predict " + (trained.folder / "run" / "state.safetensors").string() + " " + trained.star,
          "is no checkpoint");
  refused("predict " + trained.checkpoint, "image is required");
  refused("eval " + trained.folder.path().string(), "neither best.safetensors nor last.safetensors");
  refused("eval " + trained.checkpoint + " --dataset cifar10", "--data DIR");
  refused("eval " + trained.checkpoint + " --split test", "--split");
}
