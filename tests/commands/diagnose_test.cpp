#include <doctest/doctest.h>

#include <cmath>

#include "tests/commands/program.h"

using namespace tessera;

namespace {

void train(const std::filesystem::path& to, const std::string& preset, const std::string& more = "") {
  const Said said =
      tessera_program("train --dataset shapes --image-size 32 --epochs 1 --batch 16 --model " + preset +
                      " --set data.train_images=32 --set data.validation_images=10"
                      " --set schedule.warmup_epochs=0" +
                      more + " --out " + to.string());
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
}

}  // namespace

TEST_CASE("diagnose writes the figures of several runs into one page, and their numbers") {
  const TemporaryFolder folder;
  const std::string small =
      " --set model.dim=16 --set model.depth=2 --set model.attention.heads=2"
      " --set model.attention.head_dim=8";
  train(folder / "vit", "vit", small);
  train(folder / "sl-vit", "sl-vit", small);
  const std::string page = folder / "page.html", csv = folder / "numbers.csv";
  const Said said =
      tessera_program("diagnose " + (folder / "vit").string() + " " + (folder / "sl-vit").string() +
                      " --images 6 --shown 1 --json --out " + page + " --csv " + csv);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto runs = said.json()["runs"];
  REQUIRE(runs.size() == 2);
  for (const auto& run : runs) {
    CHECK(run["images"] == 6);
    REQUIRE(run["layers"].size() == 2);
    for (const auto& layer : run["layers"]) {
      CHECK(layer["sqrt_d"].get<double>() == doctest::Approx(std::sqrt(8.0)));
      CHECK(layer["divergence"].size() == 2);
      CHECK(layer["divergence"][0].get<double>() > 0);
    }
  }
  CHECK_FALSE(runs[0]["layers"][0]["learned"].get<bool>());
  CHECK(runs[1]["layers"][0]["learned"].get<bool>());
  CHECK(runs[1]["layers"][0]["temperature"][0] != runs[0]["layers"][0]["temperature"][0]);
  // A row whose own key is masked cannot be flat over all 65 keys.
  CHECK(runs[1]["layers"][0]["divergence"][0].get<double>() > std::log(65.0 / 64.0) - 1e-4);
  const std::string html = bytes_of(page);
  CHECK(html.find("Temperature of the softmax by depth") != std::string::npos);
  CHECK(html.find("sl-vit") != std::string::npos);
  CHECK(html.find("Learned spatial priors") == std::string::npos);
  const std::string numbers = bytes_of(csv);
  CHECK(numbers.starts_with("run,module,quantity,head,row,column,value\n"));
  CHECK(numbers.find("sl-vit,blocks.1.attn,temperature,2,,,") != std::string::npos);
}

TEST_CASE("diagnose refuses a query outside of the picture and a run that is not there") {
  check_refused("diagnose nowhere --query-row 1.5", "--query-row");
  check_refused("diagnose nowhere", "nowhere");
}
