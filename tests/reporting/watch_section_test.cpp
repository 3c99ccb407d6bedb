#include "apps/reporting/watch_section.h"

#include <doctest/doctest.h>

#include "apps/reporting/chart.h"
#include "apps/training/watch_file.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

// The section of a run with so many watched steps, blocks and heads, whose temperatures are 4 + head.
std::string section_of(int64_t steps, int64_t blocks, int64_t heads) {
  const TemporaryFolder folder;
  WatchFile file(folder.path(), {});
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<LayerFigures> all;
    for (int64_t b = 0; b < blocks; ++b)
      all.push_back({.layer = "blocks." + std::to_string(b), .activation_rms = 1 + static_cast<double>(b)});
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t h = 0; h < heads; ++h)
        all.push_back({.layer = "blocks." + std::to_string(b) + ".attn",
                       .head = h,
                       .temperature = 4 + static_cast<double>(h)});
    file.add(step, all);
  }
  RunRecord run;
  run.path = folder.path();
  return watch_section(run);
}

}  // namespace

TEST_CASE("watch section: nothing for a run that was not watched") {
  const TemporaryFolder folder;
  RunRecord run;
  run.path = folder.path();
  CHECK(watch_section(run).empty());
}

TEST_CASE("watch section: a line for each layer and head, in the colour of its place in the model") {
  const std::string html = section_of(3, 3, 2);
  CHECK(has(html, "Activations"));
  CHECK(!has(html, "Gates"));
  CHECK(has(html, "blocks.2 <b>3</b>"));
  CHECK(has(html, "blocks.2.attn, head 1 <b>5</b>"));
  CHECK(count(html, "stroke:#2f6de5") == 3);  // of the first block and its two heads
  CHECK(count(html, "stroke:#ee8022") == 3);  // of the last
  CHECK(count(html, "<path class=\"series\"") == 3 + 6);
  CHECK(!has(html, "watched steps is drawn"));
}

TEST_CASE("watch section: of more heads than a legend tells apart it names the layers' means") {
  const std::string html = section_of(2, 3, 4);
  CHECK(has(html, "and thin and pale each head"));
  CHECK(has(html, "blocks.1.attn <b>5.5</b>"));
  CHECK(!has(html, "blocks.1.attn, head 1 <b>"));
  CHECK(has(html, "blocks.1.attn, head 1"));  // under the pointer
  CHECK(count(html, "<path class=\"series faint\"") == 12);
  CHECK(count(html, "<path class=\"series\"") == 3 + 3);
  CHECK(count(html, "<circle") == 2 * (3 + 3));       // none on a pale line
  CHECK(count(html, "stroke:#559a65") == 1 + 4 + 1);  // the middle of three layers is neither end's colour
}

TEST_CASE("watch section: what is not drawn is said") {
  const std::string heads = section_of(2, 5, 6);
  CHECK(has(heads, "the mean over each layer&#39;s heads, watch.csv has every head") !=
        has(heads, "the mean over each layer's heads, watch.csv has every head"));
  CHECK(has(heads, "blocks.4.attn <b>6.5</b>"));
  CHECK(count(heads, "<path class=\"series\"") == 5 + 5);
  const std::string steps = section_of(601, 1, 1);
  CHECK(has(steps, "One of 3 watched steps is drawn; watch.csv has them all."));
  CHECK(has(steps, "&quot;step 601&quot;"));
  CHECK(!has(steps, "&quot;step 600&quot;"));
}
