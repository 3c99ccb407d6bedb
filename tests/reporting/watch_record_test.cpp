#include "apps/reporting/watch_record.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "apps/training/watch_file.h"
#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

TEST_CASE("watch.csv is read as it was written, without a line that is not ended") {
  const TemporaryFolder folder;
  CHECK(read_watch_file(folder.path()).empty());
  {
    WatchFile file(folder.path(), {});
    file.add(5, {{.layer = "blocks.0", .activation_rms = 0.25}, {.layer = "blocks.0.attn", .head = 2}});
  }
  const std::string whole = bytes_of(folder / "watch.csv");
  put(folder / "watch.csv", whole + "6,blocks.0,,1");
  const std::vector<WatchRow> rows = read_watch_file(folder.path());
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].step == 5 && rows[0].figures.layer == "blocks.0" && rows[0].figures.head == -1));
  CHECK(rows[0].figures.activation_rms == 0.25);
  CHECK((rows[1].figures.head == 2 && std::isnan(rows[1].figures.activation_rms)));
  put(folder / "watch.csv", WatchFile::head());
  CHECK(read_watch_file(folder.path()).empty());
}

TEST_CASE("watch.csv: another table, and lines that are no rows, are named with what is wrong") {
  const TemporaryFolder folder;
  const std::string head = WatchFile::head(), path = folder / "watch.csv",
                    commas(static_cast<size_t>(std::count(head.begin(), head.end(), ',')) - 2, ',');
  const auto refusal = [&](const std::string& text) {
    put(path, text);
    const std::string said = error_of([&] { read_watch_file(folder.path()); });
    return said.substr(std::min(said.size(), path.size() + std::string(": line ").size()));
  };
  CHECK(refusal("step,layer\n") == "1: 'step,layer', wanted '" + head + "'");
  CHECK(refusal(head + "\n1,blocks.0,," + commas.substr(1) + "\n") == "");
  CHECK(refusal(head + "\n1,blocks.0\n") == "2 has 2 fields, wanted " + std::to_string(commas.size() + 3));
  CHECK(refusal(head + "\nx,blocks.0," + commas + "\n") == "2: 'x' is no number");
  CHECK(refusal(head + "\n1,blocks.0,1.5" + commas + "\n") == "2: '1.5' is no number");
  CHECK(refusal(head + "\n1,blocks.0," + commas + "two\n") == "2: 'two' is no number");
  CHECK(refusal(head + "\n99999999999999999999,b," + commas + "\n") ==
        "2: '99999999999999999999' is no number");
}
