#include <doctest/doctest.h>

#include <set>

#include "engine/ops/catalog.h"
#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("tessera gradcheck walks the whole catalog") {
  const Said said = tessera_program("gradcheck --json");
  CAPTURE(said.err);
  CHECK(said.code == 0);
  const nlohmann::json rows = said.json();
  REQUIRE(rows.size() == std::size(catalog));
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i].at("op") == catalog[i].name);
    CHECK(rows[i].at("forward") == catalog[i].forward);
    CHECK(rows[i].at("backward") == catalog[i].backward);
    CHECK(rows[i].at("verdict") == "ok");
    CHECK(rows[i].at("cases").size() > 0);
    CHECK(rows[i].at("error") <= 1e-6);
  }
}

TEST_CASE("tessera gradcheck: chosen ops with their formulas") {
  const Said said = tessera_program("gradcheck layer_norm softmax");
  CHECK(said.code == 0);
  CHECK(said.out.find("dx = y (dy - sum_k dy_k y_k)") != std::string::npos);
  CHECK(said.out.find("2 ops") != std::string::npos);
  CHECK(said.out.find("gelu") == std::string::npos);
}

TEST_CASE("tessera gradcheck: a whole model") {
  const Said said = tessera_program("gradcheck --model sl-vit --entries 1 --blocks 1 --json");
  CAPTURE(said.err);
  CHECK(said.code == 0);
  std::set<std::string> names;
  for (const auto& row : said.json()) {
    CAPTURE(row.dump());
    names.insert(row.at("parameter"));
    CHECK(row.at("verdict") == "ok");
    CHECK(row.at("error") <= 1e-6);
  }
  CHECK(names.contains("blocks.0.attn.scale"));
  CHECK(names.contains("patch_embed.norm.bias"));
  CHECK_FALSE(names.contains("blocks.1.attn.scale"));
}

TEST_CASE("tessera gradcheck: models with stages, with kinks, with a prior") {
  for (const char* model : {"swin", "resnet56", "sp-vit-t"}) {
    CAPTURE(model);
    const Said said =
        tessera_program(std::string("gradcheck --image-size 32 --blocks 1 --entries 1 --model ") + model);
    CAPTURE(said.out);
    CHECK(said.code == 0);
    CHECK(said.out.find(" 0 not right") != std::string::npos);
  }
}

TEST_CASE("tessera gradcheck: what it refuses") {
  CHECK(tessera_program("gradcheck layer_nrom").complains_of("did you mean 'layer_norm'?"));
  CHECK(tessera_program("gradcheck softmax --model sl-vit").code == 2);
  CHECK(tessera_program("gradcheck --entries 3").code == 2);
  CHECK(tessera_program("gradcheck --model sl-vit --image-size 12").complains_of("multiple of 8"));
}
