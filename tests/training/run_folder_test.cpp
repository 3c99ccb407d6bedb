#include "apps/training/run_folder.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "apps/training/csv.h"
#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

TEST_CASE("a run folder keeps the rows of the epochs that count") {
  const TemporaryFolder folder;
  const auto path = folder / "a/b/run";
  {
    RunFolder run = RunFolder::create(path, {{"epochs", 3}});
    for (const char* row : {"1,2", "2,3", "3,4"}) run.add_row("epoch,loss", row);
  }
  CHECK(bytes_of(path / "metrics.csv") == "epoch,loss\n1,2\n2,3\n3,4\n");
  RunFolder run = RunFolder::open(path);
  run.keep_rows(1);
  run.add_row("epoch,loss", "2,5");
  CHECK(bytes_of(path / "metrics.csv") == "epoch,loss\n1,2\n2,5\n");
  CHECK_THROWS_WITH_AS(run.keep_rows(3), doctest::Contains("the saved state is that after epoch 3"), Error);
  run.keep_rows(0);
  run.add_row("epoch,loss", "1,7");
  CHECK(bytes_of(path / "metrics.csv") == "epoch,loss\n1,7\n");
}

TEST_CASE("events are whole lines, even after a kill") {
  const TemporaryFolder folder;
  const auto path = folder / "run";
  RunFolder::create(path, Json::object()).event("start", {{"epoch", 1}});
  put(path / "events.jsonl", bytes_of(path / "events.jsonl") + "{\"event\": \"ep");
  RunFolder::open(path).event("resume", {{"epoch", 2}});
  const std::string text = bytes_of(path / "events.jsonl");
  CHECK(text.find("{\"event\": \"ep\n{\"event\":\"resume\"") != std::string::npos);
  CHECK(text.find("\"epoch\":2,\"crc32c\":\"") != std::string::npos);
  CHECK(text.ends_with("\"}\n"));
}

TEST_CASE("one process at a time has a run, and none is written over") {
  const TemporaryFolder folder;
  const auto path = folder / "run";
  std::optional<RunFolder> first(RunFolder::create(path, Json::object()));
  CHECK(error_of([&] { RunFolder::open(path); }).find("another process") != std::string::npos);
  CHECK(error_of([&] { RunFolder::create(path, Json::object()); }).find("holds a run") != std::string::npos);
  first.reset();
  RunFolder::open(path);
  CHECK(free_folder(path) == folder / "run-2");
  CHECK(free_folder(folder / "other") == folder / "other");
  CHECK(error_of([&] { RunFolder::open(folder / "other"); }).find("no run to go on with") !=
        std::string::npos);
}

TEST_CASE("the files of a run are told from others, also by way of a link") {
  const TemporaryFolder folder;
  const auto run = folder / "run", timm = folder / "timm";
  RunFolder::create(run, Json::object());
  std::filesystem::create_directory(timm);
  put(timm / "config.json", "{}");
  put(timm / "model.safetensors", "");
  put(run / "metrics.csv", "");
  std::filesystem::create_symlink(run / "metrics.csv", folder / "table.csv");
  for (const char* name : {"config.json", "metrics.csv", "best.safetensors", "epoch-0010.safetensors",
                           "events.jsonl", "notes.txt", "../run/state.previous.safetensors"})
    CHECK_MESSAGE(is_file_of_run(run / name), name);
  CHECK(is_file_of_run(folder / "table.csv"));
  for (const char* name : {"report.html", "classes.csv", "run.onnx", "epoch-x.safetensors"})
    CHECK_MESSAGE(!is_file_of_run(run / name), name);
  CHECK_FALSE(is_file_of_run(timm / "config.json"));
  CHECK_FALSE(is_file_of_run(folder / "none" / "metrics.csv"));
}

TEST_CASE("a field of a table that a spreadsheet would compute is neutral, a number stays") {
  CHECK(csv_line({"=1+1", "+cat", "-dog", "@sum", "-0.5", "+1", "-1e-05", "a=b", ""}) ==
        "'=1+1,'+cat,'-dog,'@sum,-0.5,+1,-1e-05,a=b,\n");
  CHECK(csv_line({"=HYPERLINK(\"x\",\"y\")"}) == "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"\n");
}
