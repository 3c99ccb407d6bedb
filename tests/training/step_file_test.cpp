// steps.csv: which steps have a row, and that a run which is broken off has the rows of an unbroken one.

#include "apps/training/step_file.h"

#include <cmath>
#include <limits>

#include "engine/io/file.h"
#include "tests/error_of.h"
#include "tests/training/small_run.h"

using namespace tessera;

TEST_CASE("steps.csv: about a thousand rows, at equal distances") {
  const auto rows = [](int64_t total) {
    int64_t count = 0;
    for (int64_t step = 1; step <= total; ++step) count += StepFile::has_row(step, total);
    return count;
  };
  CHECK(rows(7) == 7);
  CHECK(rows(1000) == 1000);
  CHECK(rows(1001) == 501);  // the first, and every second
  CHECK(rows(123456) == 996);
}

TEST_CASE("steps.csv: what is written is read, and later rows are cut off") {
  const TemporaryFolder folder;
  CHECK(read_step_file(folder.path()).empty());
  {
    const StepFile file(folder.path(), 0);
    file.add({1, 0.25, 2.5, 1e-6, 3});
    file.add({2, 0.5, std::numeric_limits<double>::quiet_NaN(), 2e-6, 4});
    file.add({3, 0.75, 1.5, 3e-6, 5});
    file.save();
  }
  CHECK(read_text(folder / "steps.csv") ==
        "step,epoch,loss,lr,gradient_norm\n1,0.25,2.5,1e-06,3\n2,0.5,,2e-06,4\n3,0.75,1.5,3e-06,5\n");
  const std::vector<StepRow> rows = read_step_file(folder.path());
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].epoch == 0.75);
  CHECK(std::isnan(rows[1].loss));
  CHECK(rows[1].gradient_norm == 4);
  { const StepFile file(folder.path(), 2); }
  CHECK(read_step_file(folder.path()).size() == 2);
  write_file_atomically(folder / "steps.csv", read_text(folder / "steps.csv") + "3,0.7");  // a killed run's
  CHECK(read_step_file(folder.path()).size() == 2);
  { const StepFile file(folder.path(), 9); }
  CHECK(read_text(folder / "steps.csv").ends_with("2,0.5,,2e-06,4\n"));
  { const StepFile file(folder.path(), 0); }
  CHECK(read_text(folder / "steps.csv").empty());
}

TEST_CASE("steps.csv: another table, and lines that are no rows, are named with what is wrong") {
  const TemporaryFolder folder;
  const std::string head = "step,epoch,loss,lr,gradient_norm\n";
  const auto refusal = [&](const std::string& text) {
    write_file_atomically(folder / "steps.csv", text);
    const std::string said = error_of([&] { read_step_file(folder.path()); });
    return said.substr(std::min(said.size(), (folder / "steps.csv: line ").string().size()));
  };
  CHECK(refusal("epoch,loss\n1,2\n") == "1: is not " + head);
  CHECK(refusal("step,ep") == "");  // a kill left no more
  CHECK(refusal(head + "1,x,1,1,1\n") == "2: 'x' is not a number");
  CHECK(refusal(head + "1,1,1,1,1\n2,1e999,1,1,1\n") == "3: '1e999' is not a number");
  CHECK(refusal(head + "1,1,1,1,1z\n") == "2: '1z' is not a number");
  for (const char* step : {"0", "", "1e15", "-1"}) {
    CAPTURE(step);
    CHECK(refusal(head + step + ",1,1,1,1\n") == "2: begins with no step");
  }
  CHECK(refusal(head + "1,1,1,1\n") == "2 has 4 fields, wanted 5");
  CHECK(refusal(head + "1,1,1,1,1,x\n") == "2 has 6 fields, wanted 5");
  CHECK(refusal(head + "1,,,,\n") == "");
}

TEST_CASE("steps.csv: a damaged line does not keep a run from going on") {
  const TemporaryFolder folder;
  const std::string whole = "step,epoch,loss,lr,gradient_norm\n1,1,1,1,1\n";
  write_file_atomically(folder / "steps.csv", whole + "2,x,1,1,1\n3,1,1,1,1\n");
  const Quiet quiet;
  { const StepFile file(folder.path(), 9); }
  CHECK(read_text(folder / "steps.csv") == whole);
}

TEST_CASE("steps.csv: the rows that the state keeps take the place of changed ones, and of later ones") {
  const TemporaryFolder folder;
  const std::string rows = "step,epoch,loss,lr,gradient_norm\n1,1,1,1,1\n", later = "2,2,1,1,1\n";
  for (const std::string& found :
       {rows, rows + later, std::string("step,epoch,loss,lr,gradient_norm\n1,9,1,1,1\n"), rows.substr(0, 40),
        std::string()}) {
    CAPTURE(found);
    write_file_atomically(folder / "steps.csv", found);
    const Quiet quiet;
    StepFile::restore(folder.path(), rows);
    CHECK(read_text(folder / "steps.csv") == rows);
  }
}

TEST_CASE("steps.csv: a run that is broken off anywhere has the rows of an unbroken one") {
  const SmallRun run = small_run({{"model", small_vit}});
  const TemporaryFolder folder;
  train_in(folder / "whole", run);
  const std::string whole = read_text(folder / "whole" / "steps.csv");
  const std::vector<StepRow> rows = read_step_file(folder / "whole");
  REQUIRE(rows.size() >= 6);
  CHECK(rows.front().step == 1);
  CHECK(rows.back().epoch == std::floor(rows.back().epoch));  // the run ends with an epoch
  for (const StepRow& row : rows) CHECK(row.loss > 0);
  for (int64_t stop = 1; stop < 6; ++stop) {
    CAPTURE(stop);
    const std::filesystem::path path = folder / ("broken-" + std::to_string(stop));
    train_in(path, run, {.steps = stop});
    CHECK(read_step_file(path).size() == static_cast<size_t>(stop));
    write_file_atomically(path / "steps.csv", read_text(path / "steps.csv") + "99,9,1,1,1\n99,");
    train_in(path, run);
    CHECK(read_text(path / "steps.csv") == whole);
  }
}
