#include <doctest/doctest.h>

#include <map>

#include "models/presets.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

// A finished run of one epoch; `changes` are of its config.
void put_run(const std::filesystem::path& run, const std::string& name, const std::string& dataset,
             double top1, const Json& changes = Json::object()) {
  std::filesystem::create_directories(run);
  const bool tiny = dataset == "tiny-imagenet";
  Json config{{"model", preset(name, tiny ? 64 : 32, tiny ? 200 : 10)},
              {"preset", name},
              {"data", {{"name", dataset}, {"image_size", tiny ? 64 : 32}}}};
  config.merge_patch(changes);
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
  put_run(folder / "runs/shallow", "sl-vit", "cifar10", 0.9,
          {{"model", {{"depth", 2}}}});  // another network than the preset
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
  for (const char* text :
       {"SL-Swin with shifted pooling", "52.00 ± 2.83 (1 epoch, 2 runs)", "94.53", "<circle"})
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
  check_refused("bench table --no-speed --models vit,slvit --out " + (folder / "t.html").string(),
                "--models slvit is no row of the paper's table; did you mean 'sl-vit'?");
}

TEST_CASE("bench table: a run with as many parameters as a row but another model is left out, and named") {
  const TemporaryFolder folder;
  const std::string runs = (folder / "runs").string();
  put_run(folder / "runs/plain", "vit", "cifar10", 0.5);
  const auto put_changed = [&](const char* name, const char* changes, const char* dataset = "cifar10") {
    put_run(folder / "runs" / name, "vit", dataset, 0.9, Json::parse(changes));
  };
  put_changed("cold", R"({"model": {"attention": {"temperature": 0.25}}})");
  put_changed("masked", R"({"model": {"attention": {"mask_diagonal": true}}})");
  put_changed("undropped", R"({"model": {"drop_path": 0.0}})");
  put_changed("part", R"({"data": {"train_images": 5000}})");
  put_changed("judged", R"({"data": {"validation_images": 100}})");
  put_changed("large", R"({"data": {"image_size": 64}, "model": {"image_size": 64}})");
  put_changed("elsewhere", "{}", "shapes");
  put_run(folder / "runs/unlisted", "s-vit", "cifar10", 0.9);

  const std::string command =
      "bench table --no-speed --runs " + runs + " --out " + (folder / "t.html").string();
  const auto table = tessera_program(command + " --json").json();
  CHECK(row_of(table, "vit")["accuracy"]["cifar10"]["count"] == 1);
  REQUIRE(table["left_out"].size() == 8);
  std::map<std::string, std::string> reasons;
  for (const auto& run : table["left_out"])
    reasons[run["run"].get<std::string>()] = run["reason"].get<std::string>();
  CHECK(reasons["cold"] == "model.attention.temperature is 0.25, the row has none");
  CHECK(reasons["masked"] == "model.attention.mask_diagonal is true, the row has false");
  CHECK(reasons["undropped"] == "model.drop_path is 0.0, the row has 0.1");
  CHECK(reasons["part"] == "5000 training images");
  CHECK(reasons["judged"] == "100 validation images");
  CHECK(reasons["large"] == "64 pixels a side");
  CHECK(reasons["elsewhere"] == "on shapes");
  CHECK(reasons["unlisted"] == "no row has this model");
  const Said said = tessera_program(command);
  CHECK(said.err.find("8 runs are in no row: cold (model.attention.temperature is 0.25") !=
        std::string::npos);
  CHECK(said.err.find("part (5000 training images)") != std::string::npos);
}

TEST_CASE("bench table: runs of every row's recipe are in their rows") {
  const TemporaryFolder folder;
  const std::string runs = (folder / "runs").string();
  for (const std::string model : {"efficientnet-b0", "sl-cait", "sl-swin-spool", "resnet56"}) {
    const auto recipe =
        tessera_program("train --recipe " + model + "-cifar10 --print-config").json().at("model");
    Json changes{{"model", Json(recipe)}};
    changes["model"].erase("preset");
    put_run(folder / "runs" / model, model, "cifar10", 0.5, changes);
  }
  const auto table = tessera_program("bench table --no-speed --json --runs " + runs + " --out " +
                                     (folder / "t.html").string())
                         .json();
  CHECK(table["left_out"].empty());
  CHECK(row_of(table, "efficientnet-b0")["accuracy"]["cifar10"]["count"] == 1);
}
