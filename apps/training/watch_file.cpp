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

WatchFile::WatchFile(const std::filesystem::path& folder, const LogMark& saved) : file_(path_in(folder)) {
  const std::string text = file_.text();
  const bool longer = std::ssize(text) >= saved.bytes;
  file_.cut(longer ? saved.bytes : static_cast<int64_t>(text.rfind('\n') + 1));
  if (saved.begins(text)) return;
  fmt::print(stderr, "warning: {}: {}; the run goes on behind the rows that are there\n",
             file_.path().string(), longer ? "has been changed since the state was saved" : "has lost rows");
}

void WatchFile::add(int64_t step, const std::vector<LayerFigures>& layers) {
  std::string rows = file_.bytes() == 0 ? head() + "\n" : "";
  for (const LayerFigures& figures : layers) rows += row_of(step, figures);
  file_.add(rows);
}

LogMark WatchFile::save() const {
  file_.save();
  return LogMark::of(file_.text());
}

}  // namespace tessera
