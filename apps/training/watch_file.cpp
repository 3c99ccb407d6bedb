#include "apps/training/watch_file.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "apps/training/csv.h"

namespace tessera {

namespace {

std::string row_of(int64_t step, const LayerFigures& f) {
  std::vector<std::string> fields{std::to_string(step), f.layer, f.head < 0 ? "" : std::to_string(f.head)};
  for (const LayerColumn& column : layer_columns()) {
    const double value = f.*column.value;
    fields.push_back(std::isnan(value) ? "" : fmt::format("{:.7g}", value));
  }
  return csv_line(fields);
}

}  // namespace

std::string WatchFile::head() {
  std::string line = "step,layer,head";
  for (const LayerColumn& column : layer_columns()) line += std::string(",") + column.name;
  return line;
}

WatchFile::WatchFile(const std::filesystem::path& folder, int64_t bytes) : file_(path_in(folder)) {
  const std::string text = file_.text();
  const bool whole = std::ssize(text) >= bytes;
  file_.cut(whole ? bytes : static_cast<int64_t>(text.rfind('\n') + 1));
  if (whole) return;
  fmt::print(stderr, "warning: {}: has lost rows; the run goes on behind those that are left\n",
             file_.path().string());
}

void WatchFile::add(int64_t step, const std::vector<LayerFigures>& layers) {
  std::string rows = file_.bytes() == 0 ? head() + "\n" : "";
  for (const LayerFigures& figures : layers) rows += row_of(step, figures);
  file_.add(rows);
}

int64_t WatchFile::save() const {
  file_.save();
  return file_.bytes();
}

}  // namespace tessera
