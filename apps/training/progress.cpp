#include "apps/training/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/core/printable.h"

namespace tessera {

namespace {

constexpr std::chrono::milliseconds between_draws{100};  // on a terminal
constexpr std::chrono::seconds between_lines{10};        // in a file

size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// What goes first where a line is too long comes last; the place in the line is the order of fields_of.
enum Field { name, cells, steps, loss, accuracy, rate_of_learning, speed, waiting, time_left, field_count };
constexpr Field least_first[] = {waiting, cells, rate_of_learning, speed, accuracy, steps, loss};

std::array<std::string, field_count> fields_of(const Status& s, int bar_width) {
  return {fmt::format("epoch {}/{}", s.epoch, s.epochs),
          bar_width > 0 ? bar(static_cast<double>(s.step) / static_cast<double>(s.steps), bar_width) : "",
          fmt::format("step {}/{}", s.step, s.steps),
          fmt::format(" loss {:.4f}", s.loss),
          s.accuracy ? fmt::format(" acc {:5.1f} %", 100 * *s.accuracy) : "",
          fmt::format(" lr {:.2e}", s.lr),
          fmt::format(" {:.0f} img/s", s.rate),
          fmt::format(" wait {:.0f} %", 100 * s.waiting),
          " left " + clock_text(s.seconds_left)};
}

std::string joined(const std::array<std::string, field_count>& fields) {
  std::string line;
  for (const std::string& field : fields) line += (line.empty() || field.empty() ? "" : " ") + field;
  return line;
}

// A status on a line of its own, for files and pipes.
std::string describe(const Status& s) { return joined(fields_of(s, 0)); }

constexpr const char *good = "\033[32m", *alarming = "\033[33m", *plain = "";

const char* term_name() {
  const char* const term = std::getenv("TERM");
  return term == nullptr ? "" : term;
}

bool colours_wanted() {
  const char* const no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == 0;
}

// Goes on without output where nobody reads it any more.
void drop_broken_output() {
  if (std::ferror(stdout) == 0 || errno != EPIPE) return;
  // The errors may go to the same broken pipe, of which fmt::print would make an error of the run.
  std::fputs("tessera: nobody reads the output any more; the run goes on without it\n", stderr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) std::clearerr(stdout);
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

std::string status_line(const Status& status, size_t width) {
  auto fields = fields_of(status, 20);
  for (const Field field : least_first) {
    if (joined(fields).size() <= width) break;
    fields[field].clear();
  }
  return joined(fields).substr(0, width);
}

Progress::Progress()
    : terminal_(isatty(STDOUT_FILENO) == 1 && std::string_view(term_name()) != "dumb"),
      colours_(terminal_ && colours_wanted()) {}

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
  if (verbosity_ == Verbosity::quiet) return;
  if (verbosity_ == Verbosity::verbose) return say(describe(status), plain);
  const Clock::duration between = terminal_ ? Clock::duration(between_draws) : Clock::duration(between_lines);
  if (!is_due(between) && !last) return;
  if (!terminal_) return say(describe(status), plain);
  draw(status_line(status, terminal_width() - 1));
}

void Progress::show(const std::string& text) {
  if (verbosity_ == Verbosity::normal && terminal_ && is_due(between_draws)) draw(printable(text));
}

void Progress::note(const std::string& line) { say(line, alarming); }

void Progress::epoch(const std::string& line, bool best) {
  if (verbosity_ != Verbosity::quiet) say(line, best ? good : plain);
}

void Progress::say(const std::string& line, const char* color) {
  clear();
  const bool coloured = colours_ && *color != 0;
  fmt::print("{}{}{}\n", coloured ? color : "", printable(line), coloured ? "\033[0m" : "");
  std::fflush(stdout);
  drop_broken_output();
}

}  // namespace tessera
