#include <doctest/doctest.h>

#include "models/presets.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

void put_run(const std::filesystem::path& run, const std::string& name, const std::string& dataset,
             double top1, int depth = 0) {
  std::filesystem::create_directories(run);
  Json model = preset(name, 32, 10);
  if (depth > 0) model["depth"] = depth;
  const Json config{{"model", model}, {"preset", name}, {"data", {{"name", dataset}}}};
  put(run / "config.json", config.dump());
  put(run / "metrics.csv",
      "epoch,step,lr,train_loss,validation_loss,validation_top1,validation_top5\n1,6,0.1,2,2," +
          std::to_string(top1) + ",0.9\n");
  put(run / "events.jsonl", "{\"event\":\"start\"}\n{\"event\":\"finished\"}\n");
}

const nlohmann::json& row_of(const nlohmann::json& table, const std::string& model) {
  for (const auto& row : table["rows"])
    if (row["model"] == model) return row;
  FAIL("no row of ", model);
  return table;
}

}  // namespace

TEST_CASE("bench table: the paper's table with the sizes of our models and the accuracies of runs") {
  const TemporaryFolder folder;
  put_run(folder / "runs/a", "sl-vit", "cifar10", 0.50);
  put_run(folder / "runs/b", "sl-vit", "cifar10", 0.54);
  put_run(folder / "runs/shallow", "sl-vit", "cifar10", 0.9, 2);  // another network than the preset
  put_run(folder / "runs/c", "vit", "tiny-imagenet", 0.2);
  const std::string page = (folder / "table.html").string(), csv = (folder / "table.csv").string();
  const auto table = tessera_program("bench table --no-speed --json --runs " + (folder / "runs").string() +
                                     " --out " + page + " --csv " + csv)
                         .json();
  CHECK(table["rows"].size() == 15);
  const auto& row = row_of(table, "sl-vit");
  // 2.9 M and 199.2 M in the paper, which rounds.
  CHECK(row["parameters"].get<double>() ==
        doctest::Approx(row["paper"]["parameters"].get<double>()).epsilon(0.03));
  CHECK(row["macs"].get<double>() == doctest::Approx(row["paper"]["macs"].get<double>()).epsilon(0.03));
  CHECK(row["images_per_second"].is_null());
  const auto& accuracy = row["accuracy"]["cifar10"];
  CHECK(accuracy["count"] == 2);
  CHECK(accuracy["mean"].get<double>() == doctest::Approx(0.52));
  CHECK(accuracy["deviation"].get<double>() == doctest::Approx(0.0282843));
  CHECK(row["accuracy"]["svhn"].is_null());
  CHECK(row["paper"]["top1"]["cifar10"] == 94.53);
  CHECK(row_of(table, "vit")["accuracy"]["tiny-imagenet"]["deviation"].is_null());

  const std::string html = bytes_of(page);
  for (const char* text : {"SL-Swin with shifted pooling", "52.00 ± 2.83 (1 epoch, 2 runs)", "94.53", "<circle"})
    CHECK(html.find(text) != std::string::npos);
  CHECK(bytes_of(csv).find("sl-vit,") != std::string::npos);
}

TEST_CASE("bench table: the throughput of chosen models is measured") {
  const TemporaryFolder folder;
  const auto table =
      tessera_program("bench table --models vit,sl-vit --batch 2 --steps 1 --warmup 0 --json --out " +
                      (folder / "t.html").string())
          .json();
  CHECK(table["rows"].size() == 2);
  for (const auto& row : table["rows"]) CHECK(row["images_per_second"].get<double>() > 0);
  check_refused("bench table --no-speed --models mlp --out " + (folder / "t.html").string(), "resnet56");
}
