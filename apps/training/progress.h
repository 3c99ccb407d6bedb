#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

// What the live line says.
struct Status {
  int64_t epoch, epochs, step, steps;  // counted from 1; steps in this epoch
  double loss;                         // over the epoch so far
  std::optional<double> accuracy;      // likewise, of a classifier
  double lr;
  double rate;     // images a second
  double waiting;  // share of the time in which a step waited for data
  double seconds_left;
};

// One line that is written anew on a terminal, with a bar; a plain line now and then where stdout is a file
// or a pipe.
class Progress {
 public:
  Progress();
  ~Progress();

  void show(const Status& status, bool last);
  // The same for other work, on a terminal only.
  void show(const std::string& text);
  // A line of its own, in place of the live one.
  void note(const std::string& line);
  // Takes the live line away.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(Clock::duration between);
  void draw(const std::string& line);

  bool terminal_;
  bool drawn_ = false;
  Clock::time_point shown_{};
};

// "[########------------]" of `width` cells, `share` of them full.
std::string bar(double share, int width);

// "1:02:03", "4:05", or "-" for what is not known.
std::string clock_text(double seconds);

}  // namespace tessera
