#include <doctest/doctest.h>

#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("keys: all, below one, as JSON and as a table; an unknown one is refused") {
  const Said all = tessera_program("keys --json");
  REQUIRE(all.code == 0);
  const auto rows = all.json();
  CHECK(rows.size() > 140);
  const Said below = tessera_program("keys optimizer --json");
  CHECK(below.json().size() == 12);
  for (const auto& row : below.json()) {
    CAPTURE(row.dump());
    CHECK(row.at("key").get<std::string>().starts_with("optimizer."));
    CHECK(!row.at("meaning").get<std::string>().empty());
  }
  const Said lr = tessera_program("keys optimizer.lr");
  CHECK(lr.out.starts_with("optimizer.lr  a number above 0, default 0.003\n    the highest learning rate"));
  const Said table = tessera_program("keys model.pool --markdown");
  CHECK(table.out.find("| `model.pool.ratio` | a number of at least 0 | `0.5` |") != std::string::npos);
  CHECK(table.out.find("| pit, swin |") != std::string::npos);
  const Said bias = tessera_program("keys model.attention.qkv_bias");
  CHECK(bias.out.find("default false (vit, pit, swin, cait, t2t, lvvit, dit); true (rmt, sdt)\n") !=
        std::string::npos);
  check_refused("keys optimiser.lr", "did you mean 'optimizer.lr'?");
}
