#include <doctest/doctest.h>

#include "data/formats/image.h"
#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("tessera data info: the built-in shapes") {
  const Said said = tessera_program("data info shapes --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const nlohmann::json info = said.json();
  CHECK(info.at("name") == "shapes");
  CHECK(info.at("image_shape").size() == 3);
  int64_t train = 0, validation = 0;
  for (const auto& each : info.at("classes")) {
    train += each.at("train").get<int64_t>();
    validation += each.at("validation").get<int64_t>();
  }
  CHECK(train == info.at("train"));
  CHECK(validation == info.at("validation"));
  CHECK(info.at("mean").size() == 3);
  const Said table = tessera_program("data info shapes");
  CHECK(table.code == 0);
  CHECK(table.out.find("training images") != std::string::npos);
}

TEST_CASE("tessera data info: a folder of class folders") {
  const TemporaryFolder folder;
  for (const char* name : {"cats", "dogs"}) {
    std::filesystem::create_directory(folder / name);
    for (int i = 0; i < 10; ++i) write_png(folder / name / (std::to_string(i) + ".png"), Image(8, 8));
  }
  const Said said =
      tessera_program("data info folder --image-size 8 --json --data " + folder.path().string());
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json().at("classes").size() == 2);
  CHECK(said.json().at("classes")[1].at("name") == "dogs");
  CHECK(said.json().at("train").get<int>() + said.json().at("validation").get<int>() == 20);
}

TEST_CASE("tessera data info: what it refuses") {
  CHECK(tessera_program("data info cifar11").complains_of("did you mean 'cifar10'?"));
  CHECK(tessera_program("data info cifar10").complains_of("--data"));
  CHECK(tessera_program("data info cifar10 --data /nonexistent").complains_of("nonexistent"));
  CHECK(tessera_program("data info").code == 2);
  CHECK(tessera_program("data inof").complains_of("did you mean 'info'?"));
}
