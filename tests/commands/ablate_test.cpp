// The lines of apps/recipes/README.md that make the papers' tables, each at a small size.

#include <doctest/doctest.h>

#include <fstream>
#include <regex>

#include "tests/commands/program.h"
#include "tests/sanitized.h"

using namespace tessera;

namespace {

// The arguments of each `build/tessera ablate` of the README, its lines joined.
std::vector<std::string> ablate_lines() {
  std::ifstream file(TESSERA_SOURCE "/apps/recipes/README.md");
  REQUIRE(file.is_open());
  const std::string program = "build/tessera ablate ";
  std::vector<std::string> lines;
  std::string joined;
  for (std::string line; std::getline(file, line);) {
    const bool goes_on = line.ends_with("\\");
    joined += goes_on ? line.substr(0, line.size() - 1) : line;
    if (goes_on) continue;
    if (joined.starts_with(program)) lines.push_back(joined.substr(program.size()));
    joined.clear();
  }
  return lines;
}

// Fewer blocks of the line's model.
std::string made_shallow(const std::string& line) {
  if (line.find("--recipe sdt") != std::string::npos) return " --set 'model.depth=[1,1,1,1]'";
  if (line.find("--recipe dit") != std::string::npos)
    return " --set model.depth=2 --set model.in_channels=3 --set model.tokenizer.patch_size=8 --set steps=0"
           " --set data.validation_fraction=0.1";
  if (line.find("--recipe sp-vit") != std::string::npos)
    return " --set model.depth=3 --set model.sp_layers=2";
  return " --set model.depth=2";
}

// Four shapes of 64 x 64 pixels and one step, in place of the line's data and regime.
std::string made_small(const std::string& line, const std::string& out) {
  static const std::regex data(" --data \\S+"), folder(" --out \\S+");
  std::string small = std::regex_replace(std::regex_replace(line, data, ""), folder, "");
  small += " --dataset shapes --epochs 1 --json --threads 2 --out " + out;
  for (const char* assignment :
       {"data.image_size=64", "data.train_images=4", "data.validation_images=4", "batch=4",
        "micro_batch=auto", "batch_norm=batch", "passes=1", "repetitions=1", "epoch_multiple=1",
        "schedule.warmup_epochs=0", "schedule.cooldown_epochs=0"})
    small += std::string(" --set ") + assignment;
  return small + made_shallow(line);
}

// The number of choices of the line's grid: values outside of brackets and quotes.
size_t choices_in(const std::string& line) {
  const size_t from = line.find('=', line.find("--grid "));
  size_t count = 1;
  int depth = 0;
  for (size_t i = from; i < line.size() && line[i] != ' ' && (line[i] != '\'' || i == from); ++i) {
    depth += (line[i] == '{' || line[i] == '[') - (line[i] == '}' || line[i] == ']');
    count += line[i] == ',' && depth == 0;
  }
  return count;
}

}  // namespace

TEST_CASE("each table of the papers is one line of ablate") {
  const std::vector<std::string> lines = ablate_lines();
  CHECK(lines.size() == 9);
  for (size_t i = 0; i < lines.size(); i += sanitized ? 4 : 1) {
    const std::string& line = lines[i];
    CAPTURE(line);
    const TemporaryFolder folder;
    const Said said = tessera_program("ablate " + made_small(line, folder / "table"));
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    const auto rows = said.json().at("rows");
    CHECK(rows.size() == choices_in(line));
    for (const auto& row : rows) {
      CAPTURE(row.dump());
      CHECK(row.at("note").is_null());
      CHECK(row.at("last").is_number());
    }
  }
}

TEST_CASE("a choice that the config refuses is shown with its reason") {
  const TemporaryFolder folder;
  const Said said = tessera_program("ablate " +
                                    made_small("--recipe s-vit-cifar100 --set data.image_size=32 "
                                               "--grid model.tokenizer.ratio=0.125,0.25",
                                               folder / "table") +
                                    " --set data.image_size=32");
  CHECK(said.code == 0);
  const auto rows = said.json().at("rows");
  CHECK(rows.at(0).at("note").get<std::string>().find("truncates to 0") != std::string::npos);
  CHECK(rows.at(1).at("note").is_null());
}

TEST_CASE(
    "a grid of which every choice was refused leaves the folder to the corrected one, and runs do not") {
  const TemporaryFolder folder;
  const auto ablate = [&](const std::string& grid) {
    return tessera_program("ablate " + made_small("--recipe demo --grid " + grid, folder / "table"));
  };
  CHECK(ablate("model.attention.scal=fixed,learned").code == 2);
  const Said corrected = ablate("model.attention.scale=fixed,learned");
  CAPTURE(corrected.err);
  CHECK(corrected.code == 0);
  const Said other = ablate("model.attention.mask_diagonal=false,true");
  CHECK(other.code == 2);
  CHECK(other.complains_of("holds another ablation"));
}

TEST_CASE("fine-tuning at a larger size begins with the weights of a run at the smaller one") {
  const TemporaryFolder folder;
  const std::string small =
      " --dataset shapes --epochs 1 --threads 2 --set model.depth=3 --set model.sp_layers=2 --set "
      "data.train_images=4 --set data.validation_images=4 "
      "--set batch=4 --set micro_batch=4 --set schedule.warmup_epochs=0 --set schedule.cooldown_epochs=0 "
      "--out ";
  const std::string before = folder / "64", after = folder / "96";
  REQUIRE(
      tessera_program("train --recipe sp-vit-s-imagenet --set data.image_size=64" + small + before).code ==
      0);
  const Said said = tessera_program(
      "train --recipe sp-vit-s-imagenet-384 --set data.image_size=96 --resize-positions --init " + before +
      small + after);
  CAPTURE(said.err);
  CHECK(said.code == 0);
  CHECK(said.err.find("trained weights") == std::string::npos);
  const Said from_scratch =
      tessera_program("train --recipe sp-vit-s-imagenet-384 --set data.image_size=96 --stop-after 1" + small +
                      (folder / "scratch").string());
  CHECK(from_scratch.code == 0);
  CHECK(from_scratch.err ==
        "warning: train: this recipe is meant to start from trained weights, --init FILE; "
        "without them it trains from scratch\n");
  CHECK(said.out.find("lr 5.00e-06") != std::string::npos);
  CHECK(std::filesystem::exists(std::filesystem::path(after) / "report.html"));
}

TEST_CASE("train and ablate say that a warm-up as long as the run leaves no epoch to decay in") {
  const TemporaryFolder folder;
  const std::string small =
      " --recipe demo --epochs 1 --set schedule.warmup_epochs=1 --set data.train_images=8"
      " --set data.validation_images=8 --set batch=8 --set model.dim=18 --set model.depth=1 --out ";
  const std::string wanted =
      "schedule.warmup_epochs 1 takes the whole run (epochs 1), so the learning rate never decays";
  const Said one = tessera_program("train" + small + (folder / "one").string());
  CHECK(one.code == 0);
  CHECK(one.err.starts_with("warning: train: " + wanted));
  const Said grid = tessera_program("ablate" + small + (folder / "grid").string() +
                                    " --grid model.attention.scale=fixed,learned");
  CHECK(grid.code == 0);
  CHECK(grid.err.starts_with("warning: ablate: " + wanted));
  CHECK(grid.err.find(wanted) == grid.err.rfind(wanted));  // once
}
