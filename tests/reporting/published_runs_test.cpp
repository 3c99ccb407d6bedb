#include "apps/reporting/published_runs.h"

#include <doctest/doctest.h>

#include "apps/reporting/published_table.h"
#include "apps/training/config.h"
#include "data/registry.h"
#include "tests/io/temporary_folder.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

// Writes a run of the first published row's model on CIFAR-10 with these changes of its config.
void put_run(const fs::path& run, const Json& changes, bool evaluated = true) {
  const PublishedRow row = published_rows().front();
  Json config{{"model", resolve_model(row.model_of_row, unopened_dataset("cifar10", {}))},
              {"preset", row.model},
              {"data", {{"name", "cifar10"}}}};
  config.merge_patch(changes);
  fs::create_directories(run);
  put(run / "config.json", config.dump());
  put(run / "metrics.csv", evaluated ? "epoch,validation_top1\n1,0.5\n" : "epoch,validation_top1\n");
}

// The reason for which a run with these changes is in no row; "" if it is in one.
std::string left_out(const Json& changes, bool evaluated = true) {
  const TemporaryFolder folder;
  put_run(folder / "run", changes, evaluated);
  const Json rows = runs_for_table(list_runs(folder.path()));
  REQUIRE(rows.size() == 1);
  return rows[0].value("left_out", "");
}

}  // namespace

TEST_CASE("a run is in the row whose network it trained on the paper's data, or the reason is given") {
  CHECK(left_out(Json::object()) == "");
  CHECK(left_out({{"data", {{"image_size", 32}}}}) == "");
  CHECK(left_out(Json::object(), false) == "no evaluation yet");
  CHECK(left_out({{"data", {{"name", "shapes"}}}}) == "on shapes");
  CHECK(left_out({{"data", {{"train_images", 500}}}}) == "500 training images");
  CHECK(left_out({{"data", {{"validation_images", 50}}}}) == "50 validation images");
  CHECK(left_out({{"data", {{"name", "cifar100"}, {"coarse_labels", true}}}}) == "coarse classes");
  CHECK(left_out({{"data", {{"image_size", 64}}}}) == "64 pixels a side");
  CHECK(left_out({{"model", {{"depth", 2}}}}).starts_with("model.depth is 2, the row has "));
  CHECK(left_out({{"model", {{"depth", nullptr}}}}).starts_with("model.depth is not given, the row has "));
  CHECK(left_out({{"model", {{"more", 1}}}}) == "model.more is 1, the row has none");
  CHECK(left_out({{"model", {{"depth", 2}}}, {"preset", "own"}}) == "no row has this model");
  CHECK(left_out({{"data", nullptr}}).find("data") != std::string::npos);
  CHECK(left_out({{"data", {{"nmae", "x"}}}}).find("nmae is not known here") != std::string::npos);
}

TEST_CASE("runs in no row are named on one line, the ninth and later ones by their number") {
  const auto line = [](int count) {
    Json runs = Json::array({{{"run", "in"}, {"preset", "vit"}}});
    for (int i = 0; i < count; ++i) runs.push_back({{"run", "r" + std::to_string(i)}, {"left_out", "why"}});
    return left_out_line(runs);
  };
  CHECK(line(0) == "");
  CHECK(line(1) == "1 run is in no row: r0 (why)");
  CHECK(line(2) == "2 runs are in no row: r0 (why), r1 (why)");
  CHECK(line(8).ends_with(", r7 (why)"));
  CHECK(line(10).ends_with(", r7 (why), and 2 more, which --json names"));
}
