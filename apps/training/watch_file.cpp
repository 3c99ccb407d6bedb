#include "apps/training/watch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "apps/training/csv.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

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

WatchFile::WatchFile(const std::filesystem::path& folder, int64_t bytes)
    : path_(path_in(folder)),
      descriptor_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  check(descriptor_ >= 0, path_.string(), ": cannot be opened: ", std::strerror(errno));
  const std::string text = read_text(path_);
  const bool whole = std::ssize(text) >= bytes;
  cut(whole ? bytes : static_cast<int64_t>(text.rfind('\n') + 1));
  if (whole) return;
  fmt::print(stderr, "warning: {}: has lost rows; the run goes on behind those that are left\n",
             path_.string());
}

WatchFile::~WatchFile() { close(descriptor_); }

void WatchFile::cut(int64_t bytes) const {
  check(ftruncate(descriptor_, bytes) == 0, path_.string(), ": cannot be cut: ", std::strerror(errno));
}

void WatchFile::add(int64_t step, const std::vector<LayerFigures>& layers) {
  std::string rows = lseek(descriptor_, 0, SEEK_END) == 0 ? head() + "\n" : "";
  for (const LayerFigures& figures : layers) rows += row_of(step, figures);
  for (std::string_view left = rows; !left.empty();) {
    const ssize_t count = ::write(descriptor_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, path_.string(), ": cannot be written: ", std::strerror(errno));
    left.remove_prefix(static_cast<size_t>(count));
  }
}

int64_t WatchFile::save() const {
  check(fsync(descriptor_) == 0, path_.string(), ": cannot be written: ", std::strerror(errno));
  return lseek(descriptor_, 0, SEEK_END);
}

}  // namespace tessera
