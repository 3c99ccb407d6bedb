#include <doctest/doctest.h>

#include <map>

#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("tessera models: parameters and multiply-accumulates of the papers' tables") {
  struct Size {
    int64_t parameters, macs;
  };
  // Counted by the reference implementation, for 64 x 64 pixels and 200 classes.
  const std::map<std::string, Size> known{{"vit", {2756744, 189747648}},   {"t-vit", {2756852, 189747648}},
                                          {"m-vit", {2756744, 189747648}}, {"l-vit", {2756852, 189747648}},
                                          {"s-vit", {2906120, 199246272}}, {"sl-vit", {2906228, 199246272}}};
  const Said said = tessera_program("models --image-size 64 --classes 200 --json");
  REQUIRE(said.code == 0);
  size_t found = 0;
  for (const auto& row : said.json()) {
    const auto size = known.find(row.at("name").get<std::string>());
    if (size == known.end()) continue;
    CAPTURE(row.dump());
    ++found;
    CHECK(row.at("parameters") == size->second.parameters);
    CHECK(row.at("macs") == size->second.macs);
    CHECK(row.at("weight_bytes") == 4 * size->second.parameters);
    CHECK(row.at("activation_bytes") > 1'000'000);
  }
  CHECK(found == known.size());
}

TEST_CASE("tessera models: the table") {
  const Said said = tessera_program("models --image-size 64 --classes 200");
  CHECK(said.code == 0);
  CHECK(said.out.find("sl-vit") != std::string::npos);
  CHECK(said.out.find("2.906 M") != std::string::npos);
  CHECK(said.out.find("199.25 M") != std::string::npos);
}

TEST_CASE("tessera models: a preset that does not fit says why") {
  const Said said = tessera_program("models --image-size 30 --json");
  REQUIRE(said.code == 0);
  bool explained = false;
  for (const auto& row : said.json())
    if (row.contains("reason")) {
      explained = true;
      CHECK(row.at("reason").get<std::string>().find("30") != std::string::npos);
      CHECK_FALSE(row.contains("parameters"));
    }
  CHECK(explained);
}
