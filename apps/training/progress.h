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

/// quiet: warnings alone; verbose: a line for every step in place of the bar, and more about every epoch.
enum class Verbosity { quiet, normal, verbose };

/// Shows progress on stdout: on a terminal one line with a bar, which is redrawn and leaves out what a narrow
/// window has no room for; in a file or a pipe a plain line every 10 seconds. Colours are for terminals
/// alone, and not where NO_COLOR is set (no-color.org) or TERM is "dumb". Where stdout's reader is gone (a
/// pipe into head) the run goes on without output, which stderr is told.
class Progress {
 public:
  Progress();
  ~Progress();

  void show(const Status& status, bool last);
  /// Shows a text as the progress line, on a terminal only.
  void show(const std::string& text);
  /// Prints a line that stays, in place of the progress line: something that the user should know.
  void note(const std::string& line);
  /// The same for an epoch's line, coloured where it is the best yet; not where the run is quiet.
  void epoch(const std::string& line, bool best);
  /// Removes the progress line.
  void clear();

  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  Verbosity verbosity() const { return verbosity_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(Clock::duration between);
  void draw(const std::string& line);

  void say(const std::string& line, const char* color);

  bool terminal_, colours_;
  Verbosity verbosity_ = Verbosity::normal;
  bool drawn_ = false;
  Clock::time_point shown_{};
};

/// The progress line of at most `width` columns; the lesser fields go first where they do not fit.
std::string status_line(const Status& status, size_t width);

/// "[########------------]" of `width` cells, `share` of them full.
std::string bar(double share, int width);

/// "1:02:03", "4:05", or "-" for what is not known.
std::string clock_text(double seconds);

}  // namespace tessera
