#include "apps/reporting/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/reporting/html.h"
#include "engine/io/json.h"

namespace tessera {

namespace {

constexpr double width = 560, height = 268;  // of the drawing, SVG units
constexpr double left = 52, right = 8, top = 26, bottom = 40;
constexpr size_t most_dots = 60;  // a series of at most so many points has a dot for each, unless it is faint
constexpr size_t named_colors = 8;  // of the page's style

// Maps the values [low, high] of an axis to the pixels [from, to].
struct Span {
  double low, high, from, to;
  bool logarithmic;
  std::vector<double> ticks;

  double at(double value) const {
    const auto place = [&](double v) { return logarithmic ? std::log10(v) : v; };
    return from + (to - from) * (place(value) - place(low)) / (place(high) - place(low));
  }
};

struct Limits {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool is_point(const Series& s, size_t i) { return std::isfinite(s.x[i]) && std::isfinite(s.y[i]); }

Limits limits_of(const Chart& chart, bool of_x) {
  Limits limits;
  for (const Series& s : chart.series)
    for (size_t i = 0; i < s.x.size(); ++i)
      if (is_point(s, i)) limits.take(of_x ? s.x[i] : s.y[i]);
  return limits;
}

// The scale of an axis. With `encloses` (y) it ends at the ticks around all values, otherwise (x) at the
// values.
Span span_of(const Axis& axis, Limits limits, double from, double to, bool encloses) {
  const bool logarithmic = axis.logarithmic && limits.low > 0;
  if (limits.low == limits.high && !logarithmic) {
    const double room = encloses ? std::max(0.1 * std::abs(limits.low), 1e-12) : 0.5;
    limits = {limits.low - room, limits.high + room};
  }
  std::vector<double> ticks =
      logarithmic ? power_ticks(limits.low, limits.high) : round_ticks(limits.low, limits.high, 5);
  if (encloses || logarithmic) return {ticks.front(), ticks.back(), from, to, logarithmic, ticks};
  std::erase_if(ticks, [&](double t) {
    return t < limits.low || t > limits.high || (axis.style == NumberStyle::integer && t != std::floor(t));
  });
  return {limits.low, limits.high, from, to, logarithmic, ticks};
}

// Writes a tick with enough digits to tell neighbouring ticks apart.
std::string tick_text(double value, const Span& span, NumberStyle style) {
  const double step = span.ticks.size() > 1 && !span.logarithmic ? span.ticks[1] - span.ticks[0] : 0;
  const double unit = style == NumberStyle::percent ? 100 : 1;
  if (step == 0 || std::abs(span.high) >= 1e5 || step * unit < 1e-4) return number_text(value, style);
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step * unit) - 1e-9)));
  return fmt::format("{:.{}f}{}", unit * value + 0.0, digits, style == NumberStyle::percent ? " %" : "");
}

std::string axes(const Chart& chart, const Span& x, const Span& y) {
  std::string out;
  for (const double t : y.ticks)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        x.from, x.to, y.at(t), x.from - 8, y.at(t) + 4, tick_text(t, y, chart.y.style));
  for (const double t : x.ticks)
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
        x.at(t), y.from, y.from + 4, y.from + 17, tick_text(t, x, chart.x.style));
  return out +
         fmt::format(
             "<line class=\"axis\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
             "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
             x.from, x.to, y.from, y.from, (x.from + x.to) / 2, height - 6, escaped(chart.x.label)) +
         fmt::format("<text x=\"4\" y=\"12\">{}</text>\n", escaped(chart.y.label));
}

std::string mark_line(const Mark& mark, const Span& x, const Span& y) {
  if (mark.x < x.low || mark.x > x.high) return "";
  const bool before = x.at(mark.x) > x.to - 90;
  return fmt::format(
      "<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
      "<text class=\"over\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"{5}\">{6}</text>\n",
      x.at(mark.x), y.from, y.to, x.at(mark.x) + (before ? -5 : 5), y.to + 2, before ? "end" : "start",
      escaped(mark.text));
}

// A colour from blue by teal and olive to orange: those who see no red or no green tell them from one another
// as bluer and yellower, and all are seen on light and on dark paper.
std::string between(double place) {
  constexpr std::array<std::array<double, 3>, 4> stops{
      {{0x2f, 0x6d, 0xe5}, {0x1b, 0x9a, 0xa0}, {0x8f, 0x9a, 0x2a}, {0xee, 0x80, 0x22}}};
  const double along = place * (stops.size() - 1);
  const size_t from = std::min(static_cast<size_t>(along), stops.size() - 2);
  const auto mix = [&](size_t c) {
    const double part = along - static_cast<double>(from);
    return static_cast<int>(std::lround(stops[from][c] + (stops[from + 1][c] - stops[from][c]) * part));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2));
}

// Of each series, as CSS has them.
std::vector<std::string> colors_of(const Chart& chart) {
  std::vector<std::string> colors;
  for (const Series& s : chart.series)
    colors.push_back(s.place >= 0 ? between(s.place)
                                  : fmt::format("var(--c{})",
                                                (s.color < 0 ? colors.size() : static_cast<size_t>(s.color)) %
                                                    named_colors));
  return colors;
}

std::string line_of(const Series& s, const std::string& color, const Span& x, const Span& y) {
  std::string path, dots;
  for (size_t i = 0; i < s.x.size(); ++i) {
    if (!is_point(s, i)) continue;
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", x.at(s.x[i]), y.at(s.y[i]));
    if (s.x.size() <= (s.faint ? 1 : most_dots))
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", x.at(s.x[i]), y.at(s.y[i]));
  }
  return fmt::format("<path class=\"series{}\" style=\"stroke:{}\" d=\"{}\"/><g style=\"fill:{}\">{}</g>\n",
                     s.faint    ? " faint"
                     : s.dashed ? " dashed"
                                : "",
                     color, path, color, dots);
}

// The points with their texts as JSON, for the page's script.
std::string points_of(const Chart& chart, const std::vector<std::string>& colors, const Span& x,
                      const Span& y) {
  const auto tenth = [](double pixel) { return std::round(pixel * 10) / 10; };
  Json all = Json::array();
  for (size_t k = 0; k < chart.series.size(); ++k) {
    const Series& s = chart.series[k];
    Json points = Json::array();
    for (size_t i = 0; i < s.x.size(); ++i)
      if (is_point(s, i))
        points.push_back({tenth(x.at(s.x[i])), tenth(y.at(s.y[i])),
                          chart.x.label + " " + number_text(s.x[i], chart.x.style),
                          number_text(s.y[i], chart.y.style)});
    all.push_back({{"name", s.name}, {"color", colors[k]}, {"points", points}});
  }
  return escaped(all.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string legend(const Chart& chart, const std::vector<std::string>& colors) {
  std::string out = "<div class=\"legend\">";
  for (size_t k = 0; k < chart.series.size(); ++k) {
    const Series& s = chart.series[k];
    size_t last = s.x.size();
    while (last > 0 && !is_point(s, last - 1)) --last;
    if (last == 0 || !s.listed) continue;
    out += fmt::format("<span><i{} style=\"border-color:{}\"></i>{} <b>{}</b></span>",
                       s.faint    ? " class=\"faint\""
                       : s.dashed ? " class=\"dashed\""
                                  : "",
                       colors[k], escaped(s.name), number_text(s.y[last - 1], chart.y.style));
  }
  return out + "</div>";
}

// Writes n with a space before each group of three digits.
std::string grouped(int64_t n) {
  std::string text = fmt::format("{}", n);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), " ");
  return text;
}

// What the chart shows, for readers who cannot see it: "training loss by epoch: training 0.4, validation
// 0.6".
std::string spoken(const Chart& chart) {
  std::string text = chart.y.label + " by " + chart.x.label + ":";
  for (const Series& s : chart.series) {
    size_t last = s.x.size();
    while (last > 0 && !is_point(s, last - 1)) --last;
    if (last > 0 && s.listed) text += " " + s.name + " " + number_text(s.y[last - 1], chart.y.style) + ",";
  }
  text.pop_back();
  return escaped(text);
}

}  // namespace

std::string number_text(double value, NumberStyle style) {
  if (!std::isfinite(value)) return "-";
  if (style == NumberStyle::percent) return fmt::format("{:.2f} %", 100 * value);
  if (std::abs(value) < 1e15 && (style == NumberStyle::integer || std::abs(value) >= 1000))
    return grouped(std::llround(value));
  return fmt::format("{:.4g}", value);
}

std::vector<double> round_ticks(double low, double high, int count) {
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power;
  const double step = power * (part <= 1.5 ? 1 : part <= 3.5 ? 2 : part <= 7.5 ? 5 : 10);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  std::vector<double> ticks;
  for (double k = first; k <= last; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<double> power_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = std::max(first + 1, static_cast<int>(std::ceil(std::log10(high) - 1e-9)));
  const int stride = (last - first + 7) / 8;
  std::vector<double> ticks;
  for (int power = first; power <= last; power += stride) {
    ticks.push_back(std::pow(10, power));
    if (last - first <= 2 && power < last)
      for (const double part : {2.0, 5.0}) ticks.push_back(part * std::pow(10, power));
  }
  if (ticks.back() < high) ticks.push_back(std::pow(10, last));
  return ticks;
}

std::string chart_html(const Chart& chart) {
  const Limits of_x = limits_of(chart, true), of_y = limits_of(chart, false);
  if (of_x.empty()) return "<p class=\"note\">No values.</p>";
  const std::vector<std::string> colors = colors_of(chart);
  const Span x = span_of(chart.x, of_x, left, width - right, false),
             y = span_of(chart.y, of_y, height - bottom, top, true);
  std::string lines;
  for (size_t k = 0; k < chart.series.size(); ++k) lines += line_of(chart.series[k], colors[k], x, y);
  return legend(chart, colors) + fmt::format(
                                     "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" tabindex=\"0\" "
                                     "aria-label=\"{}\" data-points=\"{}\">\n{}"
                                     "<line class=\"cursor\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>{}{}</svg>\n",
                                     width, height, spoken(chart), points_of(chart, colors, x, y),
                                     axes(chart, x, y), y.from, y.to,
                                     chart.mark ? mark_line(*chart.mark, x, y) : "", lines);
}

}  // namespace tessera
