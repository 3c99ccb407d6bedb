#include <doctest/doctest.h>

#include "data/formats/image.h"
#include "engine/core/random.h"
#include "models/presets.h"
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

// The picture's pixel (i, j) in the panel of a sheet of tokens of 32 x 32 pixels, each drawn as 5 x 5.
const uint8_t* token_pixel(const Image& sheet, int panel, int i, int j) {
  return sheet.at(16 + 3 * 24 + 5 * i + 2, 16 + panel * (160 + 6) + 5 * j + 2);
}

// The panel holds the picture's pixel (i + dy, j + dx) at (i, j), and the colour at (y, x) where there is
// none.
void check_shifted(const Image& sheet, int panel, int dy, int dx, int y, int x) {
  const auto inside = [](int k) { return k >= 0 && k < 32; };
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 32; ++j) {
      const uint8_t* wanted = inside(i + dy) && inside(j + dx) ? token_pixel(sheet, 0, i + dy, j + dx)
                                                               : token_pixel(sheet, panel, y, x);
      REQUIRE(std::equal(wanted, wanted + 3, token_pixel(sheet, panel, i, j)));
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

TEST_CASE("tessera data show: what a tokenizer sees, the picture and its shifted copies under a grid") {
  const TemporaryFolder folder;
  const std::string out = folder / "tokens.png";
  const std::string show =
      "data show shapes --set data.train_images=20 --pictures 2 --out " + out + " --tokens ";
  const Said said = tessera_program(show + "s-vit");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("patches of 4 x 4 pixels; 4 copies shifted by 2 pixels") != std::string::npos);
  const Image sheet = load_image(out);
  CHECK(sheet.width == 2 * 16 + 5 * (160 + 6) - 6);
  check_shifted(sheet, 1, -2, -2, 0, 0);  // moved down right
  check_shifted(sheet, 2, -2, 2, 0, 31);
  check_shifted(sheet, 3, 2, -2, 31, 0);
  check_shifted(sheet, 4, 2, 2, 31, 31);
  const auto on_line = [&](int i, int j) { return sheet.at(88 + i, 16 + j)[0] == 230; };
  for (int k = 0; k < 8; ++k) CHECK((on_line(20 * k, 7) && on_line(7, 20 * k)));
  CHECK(!on_line(7, 7));

  Json all = preset("s-vit", 32, 10);
  all["tokenizer"]["directions"] = "all";
  all["tokenizer"]["ratio"] = 0.25;
  put(folder / "all.json", all.dump());
  REQUIRE(tessera_program(show + (folder / "all.json").string()).code == 0);
  const Image nine = load_image(out);
  CHECK(nine.width == 2 * 16 + 9 * (160 + 6) - 6);
  check_shifted(nine, 1, 0, -1, 0, 0);  // moved right
  check_shifted(nine, 4, 1, 0, 31, 0);  // moved up
}

TEST_CASE("tessera data show: the tokens of a plain tokenizer, of a soft split, and of no tokenizer") {
  const TemporaryFolder folder;
  const std::string out = folder / "tokens.png";
  const std::string show =
      "data show shapes --set data.train_images=20 --pictures 1 --out " + out + " --tokens ";
  REQUIRE(tessera_program(show + "vit").code == 0);
  CHECK(load_image(out).width == 2 * 16 + 160);
  const Said split = tessera_program(show + "sl-t2t");
  CAPTURE(split.err);
  CHECK(split.out.find("a token every 4 x 4 pixels; 4 copies shifted by 1 pixel,") != std::string::npos);
  CHECK(tessera_program(show + "resnet56").complains_of("has no tokenizer"));
  CHECK(tessera_program(show + "dit-s-2").complains_of("4 channels"));
  CHECK(tessera_program(show + "s-vti").complains_of("did you mean"));
  CHECK(tessera_program(show + "s-vit --set augment.flip=false").complains_of("without augmentation"));
  CHECK(tessera_program(show + "s-vit --versions 2").code == 2);
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
