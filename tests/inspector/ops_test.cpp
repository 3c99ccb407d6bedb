// The page's ops compute every step of every model again, and explain its cells.

#include <algorithm>

#include "tests/inspector/model_fixtures.h"
#include "tests/inspector/node.h"

using namespace tessera;

TEST_CASE("page: every step of every fixture, computed again and explained in the page") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  std::string pages;
  int64_t models = 0;
  for (const auto& [name, path] : model_fixtures()) {
    const PassInputs inputs = inputs_of_fixture(path, DType::f64);
    const std::string page = folder / (name + ".html");
    write_page_of(inputs, inspect_pass(inputs), page);
    pages += " " + page;
    ++models;
  }
  CHECK(models >= 30);
  const Said checked = run_script("check_ops.js", pages);
  CAPTURE(checked.err);
  CHECK(checked.code == 0);
  CHECK(std::ranges::count(checked.out, '\n') == models);  // a line for each page that was checked
}
