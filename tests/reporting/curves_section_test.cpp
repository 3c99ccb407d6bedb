#include "apps/reporting/curves_section.h"

#include <doctest/doctest.h>

#include "apps/reporting/run_record.h"

using namespace tessera;

namespace {

// A run of two epochs with a loss at each of four steps.
RunRecord small_run() {
  RunRecord run;
  run.config = Json::parse(R"({"model": {"num_classes": 3}})");
  run.columns = {"train_loss", "validation_loss", "train_accuracy", "validation_top1"};
  run.rows = {{2, 2.5, 0.25, 0.125}, {1, 1.5, 0.5, 0.375}};
  for (const double epoch : {0.5, 1.0, 1.5, 2.0})
    run.steps.push_back({.step = 1, .epoch = epoch, .loss = 3 - epoch, .lr = 1e-3, .gradient_norm = 1});
  return run;
}

// The colour of the first entry of that name in the legends behind `from`.
std::string colour_of(const std::string& html, const std::string& name, size_t from) {
  const size_t end = html.find("></i>" + name + " <b>", from), start = html.rfind("border-color:", end);
  REQUIRE(end != std::string::npos);
  return html.substr(start, html.find('"', start) - start);
}

}  // namespace

TEST_CASE("curves: training and validation keep their colours from chart to chart") {
  const std::vector<RunRecord> runs{small_run()};
  const std::string html = curves_section(runs);
  const size_t loss = html.find(">Loss<"), accuracy = html.find(">Accuracy<");
  REQUIRE(loss < accuracy);
  REQUIRE(accuracy != std::string::npos);
  for (const char* name : {"training", "validation"})
    CHECK(colour_of(html, name, loss) == colour_of(html, name, accuracy));
  CHECK(colour_of(html, "training", loss) != colour_of(html, "validation", loss));
  CHECK(colour_of(html, "each step", loss) == colour_of(html, "training", loss));
}
