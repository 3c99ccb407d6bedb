#include "apps/training/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/core/printable.h"

namespace tessera {

namespace {

constexpr std::chrono::milliseconds between_draws{100};  // on a terminal
constexpr std::chrono::seconds between_lines{10};        // in a file

size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string describe(const Status& s, int bar_width) {
  const std::string cells =
      bar_width > 0 ? bar(static_cast<double>(s.step) / static_cast<double>(s.steps), bar_width) + " " : "";
  const std::string accuracy = s.accuracy ? fmt::format("  acc {:5.1f} %", 100 * *s.accuracy) : "";
  return fmt::format(
      "epoch {}/{} {}step {}/{}  loss {:.4f}{}  lr {:.2e}  {:.0f} img/s  wait {:.0f} %  left {}", s.epoch,
      s.epochs, cells, s.step, s.steps, s.loss, accuracy, s.lr, s.rate, 100 * s.waiting,
      clock_text(s.seconds_left));
}

}  // namespace

std::string bar(double share, int width) {
  const int full = std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  return "[" + std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(width - full), '-') + "]";
}

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const int64_t s = std::llround(std::clamp(seconds, 0.0, 1e9));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

Progress::Progress() : terminal_(isatty(STDOUT_FILENO) == 1) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) fmt::print("\r\033[K");
  drawn_ = false;
}

bool Progress::is_due(Clock::duration between) {
  const Clock::time_point now = Clock::now();
  if (shown_ != Clock::time_point{} && now - shown_ < between) return false;
  shown_ = now;
  return true;
}

void Progress::draw(const std::string& line) {
  fmt::print("\r\033[K{}", line.substr(0, terminal_width() - 1));
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::show(const Status& status, bool last) {
  const Clock::duration between = terminal_ ? Clock::duration(between_draws) : Clock::duration(between_lines);
  if (!is_due(between) && !last) return;
  if (!terminal_) return note(describe(status, 0));
  const std::string line = describe(status, 20);
  draw(line.size() < terminal_width() ? line : describe(status, 0));
}

void Progress::show(const std::string& text) {
  if (terminal_ && is_due(between_draws)) draw(printable(text));
}

void Progress::note(const std::string& line) {
  clear();
  fmt::print("{}\n", printable(line));
  std::fflush(stdout);
}

}  // namespace tessera
