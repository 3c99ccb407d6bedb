// apps/recipes/TABLES.md: every row of the papers' tables is a recipe whose model builds.

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "apps/training/config.h"
#include "apps/training/recipe.h"
#include "engine/core/dispatch.h"
#include "models/model.h"

using namespace tessera;

namespace {

struct Cell {
  std::string table, row, recipe, assignment, published;  // recipe: "vit-cifar100"; published: "73.81" or "-"
};

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" `"), to = text.find_last_not_of(" `");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream text(line.substr(1));
  for (std::string column; std::getline(text, column, '|');) columns.push_back(trimmed(column));
  return columns;
}

// The cells of all tables; a table's name is the beginning of the paragraph above it.
std::vector<Cell> read_tables() {
  std::ifstream file(TESSERA_SOURCE "/apps/recipes/TABLES.md");
  REQUIRE(file.is_open());
  std::vector<Cell> cells;
  std::vector<std::string> header;
  std::string paragraph, before;
  for (std::string line; std::getline(file, line); before = line) {
    if (!line.starts_with("|")) {
      header.clear();
      if (!line.empty() && (before.empty() || before.starts_with("#"))) paragraph = line;
    } else if (header.empty()) {
      header = columns_of(line);
    } else if (!line.starts_with("|---")) {
      const std::vector<std::string> row = columns_of(line);
      REQUIRE(row.size() == header.size());
      const size_t set = row[1].find(" --set ");
      const std::string assignment = set == std::string::npos ? "" : row[1].substr(set + 7);
      for (size_t i = 2; i < row.size(); ++i)
        cells.push_back({paragraph, row[0], row[1].substr(0, set) + "-" + header[i], assignment, row[i]});
    }
  }
  return cells;
}

// Builds the cell's model, of shapes alone.
void build_cell(const Cell& cell) {
  Json document = read_recipe(cell.recipe);
  if (!cell.assignment.empty()) set_key(document, cell.assignment);
  const TrainConfig config = read_train_config(document, cell.recipe);
  build(resolve_model(config.model, expected_data(config.data)));
}

}  // namespace

TEST_CASE("every row of the papers' tables is a recipe") {
  const DryRun dry;
  int refused = 0;
  for (const Cell& cell : read_tables()) {
    CAPTURE(cell.table);
    CAPTURE(cell.row);
    CAPTURE(cell.recipe);
    if (cell.published == "-") {
      try {
        build_cell(cell);
      } catch (const Error&) {
        ++refused;
      }
      continue;
    }
    CHECK_NOTHROW(build_cell(cell));
    if (!cell.assignment.empty()) continue;
    const std::string about = read_train_config(read_recipe(cell.recipe), cell.recipe).about;
    CHECK_MESSAGE(about.find(" " + cell.published) != std::string::npos, about);
  }
  // Without a number there are: a shift of half a pixel, and LV-ViT-T at 384 pixels.
  CHECK(refused == 2);
}

TEST_CASE("the list of tables is whole") {
  const std::map<std::string, int> published{{"Table 1", 10},
                                             {"Table 2", 60},
                                             {"Table 3", 6},
                                             {"Table 4", 8},
                                             {"Table 5", 8},
                                             {"Supplementary table 1", 12},
                                             {"Supplementary table 2", 12},
                                             {"ImageNet, top-1 accuracy in %, at 224", 11},
                                             {"The first 100 classes", 3},
                                             {"ADE20K", 2},
                                             {"ImageNet, top-1 accuracy in %.", 6},
                                             {"Data-dependent", 4},
                                             {"SDT on DiT", 4},
                                             {"The ablation of decay, on DiT", 0}};
  std::map<std::string, int> found;
  for (const Cell& cell : read_tables()) {
    std::string name = "a table that no test knows: " + cell.table;
    for (const auto& [known, count] : published)
      if (cell.table.starts_with(known)) name = known;
    found[name] += cell.published != "-";
  }
  CHECK(found == published);
}
