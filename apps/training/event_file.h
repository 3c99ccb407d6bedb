#pragma once

// TensorBoard's event files: TFRecord frames around protocol buffers.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// CRC-32C (Castagnoli; RFC 3720, B.4), and as TFRecord stores it: turned right by 15 bits, plus 0xa282ead8.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

/// One TFRecord: length as u64, its masked CRC as u32, the bytes, their masked CRC; all little-endian.
std::string tf_record(std::string_view bytes);

using Scalars = std::span<const std::pair<std::string, double>>;  ///< tag, value; stored as float

/// How many numbers lie between each limit and the one before it, or `lowest`.
struct Histogram {
  std::string tag;
  double lowest = 0, highest = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits = {}, counts = {};
};

/// Event messages (tensorflow/core/util/event.proto), `wall_time` in seconds since 1970.
std::string version_event(double wall_time);              ///< what a file begins with
std::string start_event(double wall_time, int64_t step);  ///< makes steps from here on in other files void
std::string scalars_event(double wall_time, int64_t step, Scalars scalars);
/// A picture as the bytes of a PNG file.
std::string image_event(double wall_time, int64_t step, const std::string& tag, int height, int width,
                        std::string_view png);

std::string histogram_event(double wall_time, int64_t step, std::span<const Histogram> histograms);
/// `graph`: the bytes of a GraphDef.
std::string graph_event(double wall_time, std::string_view graph);
/// What a run was begun with, for the page of hyperparameters
/// (tensorboard/plugins/hparams/plugin_data.proto).
std::string settings_event(double wall_time, const Json& settings);

/// An event file that grows. Events are buffered and written every few seconds, by flush() and at the end.
class EventFile {
 public:
  /// Makes a new file in the folder, events.out.tfevents.TIME.HOST.PID, whose events come after `step`. Fails
  /// if it cannot be written.
  EventFile(const std::filesystem::path& folder, int64_t step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void scalars(int64_t step, Scalars scalars);
  void image(int64_t step, const std::string& tag, int height, int width, std::string_view png);
  void histograms(int64_t step, std::span<const Histogram> histograms);
  void graph(std::string_view graph);
  void settings(const Json& settings);
  void flush();  ///< fails, naming the file, where it cannot be written
  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  int descriptor_;
  std::string waiting_;
  double written_ = 0;  ///< time of the last write, in seconds since 1970
};

}  // namespace tessera
