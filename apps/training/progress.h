#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// The contents of the progress line.
struct Status {
  int64_t epoch, epochs, step, steps;  ///< counted from 1; steps in this epoch
  double loss;                         ///< mean over the epoch so far
  std::optional<double> accuracy;      ///< over the epoch so far, of a classifier
  double lr;
  double rate;     ///< images a second
  double waiting;  ///< share of the time in which steps waited for data
  double seconds_left;
};

/// Shows progress on stdout: on a terminal one line with a bar, which is redrawn; in a file or a pipe a plain
/// line every 10 seconds.
class Progress {
 public:
  Progress();
  ~Progress();

  void show(const Status& status, bool last);
  /// Shows a text as the progress line, on a terminal only.
  void show(const std::string& text);
  /// Prints a line that stays, in place of the progress line.
  void note(const std::string& line);
  /// Removes the progress line.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(Clock::duration between);
  void draw(const std::string& line);

  bool terminal_;
  bool drawn_ = false;
  Clock::time_point shown_{};
};

/// "[########------------]" of `width` cells, `share` of them full.
std::string bar(double share, int width);

/// "1:02:03", "4:05", or "-" for what is not known.
std::string clock_text(double seconds);

}  // namespace tessera
