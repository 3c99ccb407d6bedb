#pragma once

// Table 2 of Lee et al., "Vision Transformer for Small-Size Datasets" (2021), beside what is measured here.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// A row as the paper has it. Its throughput is of an RTX 2080 Ti, with 128 images of 64 x 64 pixels a batch.
struct PublishedRow {
  std::string model, about;  ///< the preset, and the paper's name of it
  Json model_of_row;         ///< the preset with what the row's recipe changes in it
  double images_per_second = 0, macs = 0, parameters = 0;
  std::map<std::string, double> top1;  ///< by data set, in percent
};

/// The rows of table 2, from the recipes' table, in the paper's order.
std::vector<PublishedRow> published_rows();

/// The table's data sets, in the paper's order.
const std::vector<std::string>& published_datasets();

/// The best validation top-1 (a fraction) of those `runs` (runs_for_table) that trained the preset on that
/// data set:
/// {"count", "mean", "deviation" (null for one run), "epochs": [of each run]}; null without such a run.
Json accuracy_of(const Json& runs, const std::string& model, const std::string& dataset);

/// The row for people and programs: model, about, parameters, macs, images_per_second (null where it was not
/// measured), "accuracy" {data set: accuracy_of()}, "paper" (an object of the published numbers).
Json compared_row(const PublishedRow& paper, const Json& runs, int64_t parameters, int64_t macs,
                  const Json& images_per_second);

/// The rows as a page, with the paper's figure 1 (accuracy on Tiny-ImageNet by throughput) as published and
/// as measured here. `where` says on what the throughput was measured.
std::string compared_page(const Json& rows, const std::string& where);

/// The rows as CSV, a line each.
std::string compared_csv(const Json& rows);

/// "54.02 (2 runs, 5 epochs)", "54.02 ± 0.31 (...)", or "-", of what accuracy_of() returns.
std::string accuracy_text(const Json& accuracy);

}  // namespace tessera
