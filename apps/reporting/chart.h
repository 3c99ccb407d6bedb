#pragma once

// Line charts as SVG inside an HTML page (html.h), whose script shows the numbers under the pointer.

#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of one length; points that are not finite are left out
  bool dashed = false;
  int color = -1;  // 0 .. 7; -1: by its place in the chart
};

enum class Numbers { plain, percent, integer };

struct Axis {
  std::string label;
  Numbers numbers = Numbers::plain;
  bool logarithmic = false;  // powers of ten apart; without effect where a value is not above 0
};

// A vertical line with a word.
struct Mark {
  double x;
  std::string text;
};

struct Chart {
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::optional<Mark> mark = {};
};

// Its legend, with the last value of each series, and its drawing as HTML; a sentence where no series has a
// point.
std::string draw(const Chart& chart);

// Round numbers (1, 2 or 5 times a power of ten apart) that enclose [low, high], about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);
// Powers of ten that enclose it, and between few of them 2 and 5 times those. low > 0.
std::vector<double> power_ticks(double low, double high);

// A number as a person reads it, with about four digits: "0.1323", "12.4 %", "1 560".
std::string number_text(double value, Numbers numbers);

}  // namespace tessera
