#include <doctest/doctest.h>

#include "data/formats/image.h"
#include "engine/core/random.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

// train and val of two classes with `count` different pictures each.
void put_folder(const std::filesystem::path& root, int count) {
  Random random(1);
  for (const char* split : {"train", "val"})
    for (const char* name : {"cats", "dogs"}) {
      std::filesystem::create_directories(root / split / name);
      for (int i = 0; i < count; ++i) {
        Image image(16, 16);
        for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random.below(256));
        write_png(root / split / name / (std::to_string(i) + ".png"), image);
      }
    }
}

}  // namespace

TEST_CASE("tessera data check: a good folder, then one with a leak, then a layout that is wrong") {
  const TemporaryFolder folder;
  put_folder(folder.path(), 3);
  const std::string command = "data check folder " + folder.path().string();
  Said said = tessera_program(command);
  CHECK(said.code == 0);
  CHECK(said.out.find("nothing wrong") != std::string::npos);
  std::filesystem::copy_file(folder / "train/cats/0.png", folder / "val/cats/leak.png");
  said = tessera_program(command);
  CHECK(said.code == 1);
  CHECK(said.out.find("WRONG leakage") != std::string::npos);
  CHECK(said.out.find("leak.png") != std::string::npos);
  const nlohmann::json report = tessera_program(command + " --json").json();
  CHECK(report.at("passed") == false);
  CHECK(report.at("findings").at(0).at("kind") == "leakage");
  CHECK(report.at("classes").at(0).at("validation") == 4);
  std::filesystem::copy_file(folder / "train/cats/0.png", folder / "val/stray.png");
  said = tessera_program(command + " --json");
  CHECK(said.code == 1);
  CHECK(said.json().at("findings").at(0).at("kind") == "layout");
}

TEST_CASE("tessera data check: bad usage") {
  CHECK(tessera_program("data check cifar11 /tmp").complains_of("did you mean"));
  CHECK(tessera_program("data check cifar10 /nonexistent").complains_of("no folder"));
  CHECK(tessera_program("data check folder /tmp --coarse-labels").complains_of("coarse"));
}

TEST_CASE("tessera data show: rows of pictures, each with its versions") {
  const TemporaryFolder folder;
  const std::string out = folder / "sheet.png";
  const Said said =
      tessera_program("data show shapes --set data.train_images=20 --pictures 2 --versions 3 --out " + out);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("2 pictures with 3 versions each") != std::string::npos);
  const Image sheet = load_image(out);
  CHECK(sheet.width == 2 * 16 + 96 + 2 * 6 + 3 * (96 + 6));
  CHECK(sheet.height == 2 * 16 + 2 * 24 + 2 * (24 + 96 + 2 * 6));
  const Said again = tessera_program(
      "data show shapes --set data.train_images=20 --set augment.flip=false --set augment.crop_padding=0"
      " --pictures 1 --versions 1 --out " +
      out);
  REQUIRE(again.code == 0);
  const Image plain = load_image(out);  // nothing changes the picture: both cells are alike
  for (int y = 88; y < 88 + 96; ++y)
    for (int x = 0; x < 96; ++x)
      REQUIRE(std::equal(plain.at(y, 16 + x), plain.at(y, 16 + x) + 3, plain.at(y, 16 + 96 + 12 + x)));
}

TEST_CASE("tessera data show: pictures whose pixels have classes, and mixed ones") {
  const TemporaryFolder folder;
  const std::string out = folder / "sheet.png";
  for (const char* what : {"shapes-seg", "shapes --set augment.mixup=0.8"}) {
    const Said said =
        tessera_program(std::string("data show ") + what + " --pictures 2 --versions 2 --out " + out);
    CAPTURE(said.err);
    CHECK(said.code == 0);
    CHECK(load_image(out).width == 2 * 16 + 96 + 2 * 6 + 2 * (96 + 6));
  }
}

TEST_CASE("tessera data show: what it refuses") {
  CHECK(tessera_program("data show shapes --out sheet.jpg").complains_of(".png"));
  CHECK(tessera_program("data show shapes").complains_of("--out"));
  CHECK(tessera_program("data show shapes --recipe nosuch --out x.png").complains_of("nosuch"));
  CHECK(tessera_program("data show shapes --set augment.flpi=1 --out x.png").complains_of("did you mean"));
}

TEST_CASE("tessera data fetch: what it refuses, and what is there already") {
  const TemporaryFolder folder;
  const std::string dir = folder / "new";
  CHECK(tessera_program("data fetch imagenet " + dir).complains_of("account"));
  CHECK(tessera_program("data fetch shapes " + dir).complains_of("nothing to fetch"));
  CHECK(tessera_program("data fetch cifar11 " + dir).complains_of("did you mean"));
  const Said offline = tessera_program("data fetch mnist " + dir + " --url http://127.0.0.1:1");
  CHECK(offline.code == 2);
  CHECK((offline.complains_of("cannot be reached") || offline.complains_of("this build")));
  std::filesystem::create_directories(folder / "svhn");
  put(folder / "svhn/train_32x32.mat", "1");
  put(folder / "svhn/test_32x32.mat", "1");
  const Said there = tessera_program("data fetch svhn " + (folder / "svhn").string());
  CHECK(there.code == 0);
  CHECK(there.out.find("already there") != std::string::npos);
}

TEST_CASE("tessera data info: DIR as an argument or by --data, not both") {
  const TemporaryFolder folder;
  put_folder(folder.path(), 2);
  const std::string dir = folder.path().string();
  const Said a = tessera_program("data info folder " + dir),
             b = tessera_program("data info folder --data " + dir);
  CHECK(a.code == 0);
  CHECK(a.out == b.out);
  CHECK(tessera_program("data info folder " + dir + " --data " + dir).code == 2);
}
