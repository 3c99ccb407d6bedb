#pragma once

// Line charts as SVG for the pages of html.h, whose script shows the values under the pointer.

#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of equal length; points that are not finite are left out
  bool dashed = false;
  int color = -1;  // 0 to 7; -1: chosen by the series' position in the chart
  // From 0 to 1: where the series stands among others that have an order, as layers have; its colour is then
  // one from blue by teal and olive to orange. -1: it has none.
  double place = -1;
  bool faint = false;  // thin and pale, for values that scatter around another series
  bool listed = true;  // in the legend; one that is not is named by the pointer alone
};

// How numbers are written: with four digits, as a percentage, or as whole numbers.
enum class NumberStyle { plain, percent, integer };

struct Axis {
  std::string label;
  NumberStyle style = NumberStyle::plain;
  bool logarithmic = false;  // ignored where a value is not above 0
};

// A vertical line with a label.
struct Mark {
  double x;
  std::string text;
};

struct Chart {
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::optional<Mark> mark = {};
};

// The chart as HTML: a legend with the last value of each series, and the drawing. A chart without any point
// is a sentence that says so.
std::string chart_html(const Chart& chart);

// About `count` ticks that enclose [low, high]; their distance is 1, 2 or 5 times a power of ten.
std::vector<double> round_ticks(double low, double high, int count);
// Powers of ten that enclose [low, high], and where there are few, 2 and 5 times those too. low > 0.
std::vector<double> power_ticks(double low, double high);

// A number for people, with about four digits: "0.1323", "12.4 %", "1 560".
std::string number_text(double value, NumberStyle style);

}  // namespace tessera
