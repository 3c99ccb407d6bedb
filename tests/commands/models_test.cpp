#include <doctest/doctest.h>

#include <map>

#include "engine/io/json.h"
#include "tests/commands/program.h"
#include "tests/sanitized.h"

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

TEST_CASE("tessera models --train-memory: each recipe's step, by the images that go through at once") {
  const Said said = tessera_program("models --train-memory --json");
  REQUIRE(said.code == 0);
  std::map<std::string, Json> rows;
  for (const auto& row : said.json()) rows[row.at("name").get<std::string>()] = row;
  CHECK(rows.size() > 100);
  for (const auto& [name, row] : rows) {
    CAPTURE(row.dump());
    CHECK(row.at("cpu_images") <= row.at("batch"));
    CHECK(row.at("cpu_images") <= row.at("gpu_images"));
    CHECK(row.at("cpu_bytes") <= row.at("gpu_bytes"));
    CHECK(row.at("gpu_bytes") < 80'000'000'000);  // one GPU of 80 GB takes every recipe as it is
  }
  const Json &sl = rows.at("sl-vit-tiny-imagenet"), &rmt = rows.at("rmt-s-imagenet");
  CHECK((sl.at("batch") == 128 && sl.at("cpu_images") == 64 && sl.at("gpu_images") == 128));
  CHECK((rmt.at("image_size") == 224 && rmt.at("cpu_images") == 32 && rmt.at("gpu_images") == 32));
  CHECK(rmt.at("gpu_bytes") == rmt.at("cpu_bytes"));
  if (sanitized) return;  // each of the two takes minutes there
  const Said shown = tessera_program("models --train-memory");
  CHECK(shown.code == 0);
  CHECK(shown.out.find("rmt-s-imagenet") != std::string::npos);
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
