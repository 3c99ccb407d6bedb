#include "apps/reporting/html.h"

#include <doctest/doctest.h>

#include <cmath>

#include "apps/reporting/chart.h"

using namespace tessera;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string base64_of(const std::string& text) {
  return base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace

TEST_CASE("text from outside cannot become markup") {
  CHECK(escaped("<b> & \"it's\"") == "&lt;b&gt; &amp; &quot;it&#39;s&quot;");
  CHECK(escaped("é 漢 🂡") == "é 漢 🂡");
  CHECK(escaped("a\xff\xc3z\x01") == "a\xEF\xBF\xBD\xEF\xBF\xBDz\xEF\xBF\xBD");
  CHECK(escaped("\xe6\xbc") == "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut short
}

TEST_CASE("base 64 as RFC 4648 has it") {
  CHECK(base64_of("") == "");
  CHECK(base64_of("f") == "Zg==");
  CHECK(base64_of("fo") == "Zm8=");
  CHECK(base64_of("foo") == "Zm9v");
  CHECK(base64_of("foobar") == "Zm9vYmFy");
  CHECK(base64_of("\xff\xfe\xfd") == "//79");
}

TEST_CASE("a page needs nothing from elsewhere") {
  const std::string html =
      page("a < b", card("Loss", "", chart_html({}), true) + picture(Image(2, 2), 64, "x"));
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(has(html, "<title>a &lt; b</title>"));
  CHECK(has(html, "src=\"data:image/png;base64,iVBORw0KGgo"));
  CHECK(!has(html, "http"));
  CHECK(!has(html, "<link"));
  CHECK(has(html, "prefers-color-scheme: dark"));
}

TEST_CASE("ticks are round and enclose the values") {
  CHECK(round_ticks(0.12, 0.94, 5) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
  CHECK(round_ticks(1, 8, 5) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(round_ticks(-3, 42, 5).front() == -10);
  CHECK(power_ticks(2e-6, 1e-3).front() == doctest::Approx(1e-6));
  CHECK(power_ticks(2e-6, 1e-3).back() == doctest::Approx(1e-3));
  CHECK(power_ticks(2, 60) == std::vector<double>{1, 2, 5, 10, 20, 50, 100});
  CHECK(power_ticks(1e-30, 1).size() <= 10);
}

TEST_CASE("numbers as people read them") {
  CHECK(number_text(0.13226717, NumberStyle::plain) == "0.1323");
  CHECK(number_text(0.9855, NumberStyle::percent) == "98.55 %");
  CHECK(number_text(1560, NumberStyle::integer) == "1 560");
  CHECK(number_text(-1234567.2, NumberStyle::plain) == "-1 234 567");
  CHECK(number_text(1e-6, NumberStyle::plain) == "1e-06");
  CHECK(number_text(std::nan(""), NumberStyle::percent) == "-");
}

TEST_CASE("a chart draws every finite point of its series") {
  const double gap = std::nan("");
  const Chart chart{
      .x = {"epoch", NumberStyle::integer},
      .y = {"loss"},
      .series = {{"train", {1, 2, 3}, {2, 1.5, 1.25}}, {"validation", {1, 2, 3}, {2.5, gap, 2}}},
      .mark = Mark{2, "best <2>"}};
  const std::string html = chart_html(chart);
  size_t dots = 0;
  for (size_t at = 0; (at = html.find("<circle", at)) != std::string::npos; ++at) ++dots;
  CHECK(dots == 5);
  CHECK(has(html, "validation <b>2</b>"));
  CHECK(has(html, "best &lt;2&gt;"));
  CHECK(has(html, "&quot;epoch 3&quot;,&quot;1.25&quot;"));
  CHECK(!has(html, "nan"));
}

TEST_CASE("a chart of one point, of equal values, of none") {
  const auto chart = [](std::vector<double> x, std::vector<double> y, bool logarithmic) {
    return chart_html(
        {.x = {"step"}, .y = {"lr", NumberStyle::plain, logarithmic}, .series = {{"lr", x, y}}});
  };
  for (const bool logarithmic : {false, true}) {
    for (const double value : {0.0, 1.0, -2.0, 3e-7}) {
      const std::string html = chart({1, 2}, {value, value}, logarithmic) + chart({7}, {value}, logarithmic);
      CAPTURE(html);
      CHECK(has(html, "<circle"));
      CHECK(!has(html, "nan"));
      CHECK(!has(html, "inf"));
    }
    CHECK(chart({}, {}, logarithmic) == "<p class=\"note\">No values.</p>");
    CHECK(chart({1}, {std::nan("")}, logarithmic) == "<p class=\"note\">No values.</p>");
  }
}
