#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/commands/short_run.h"

using namespace tessera;

TEST_CASE("--quiet, --verbose and --json say little, much, and events") {
  const TemporaryFolder folder;
  const std::string common = "--batch 16 --epochs 2 ";
  SUBCASE("quiet") {
    const Said said = train(folder, common + "--quiet --note 'a first try'");
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    CHECK(said.out.starts_with("\nDone in f32: best top-1"));
    CHECK(std::count(said.out.begin(), said.out.end(), '\n') == 2);
    CHECK(bytes_of(folder / "run" / "notes.txt").find("  a first try\n") != std::string::npos);
  }
  SUBCASE("verbose") {
    const Said said = train(folder, common + "--verbose");
    for (int step = 1; step <= 6; ++step)
      CHECK(said.out.find("epoch 2/2 step " + std::to_string(step) + "/6") != std::string::npos);
    CHECK(said.out.find("  gradient ") != std::string::npos);
    CHECK(said.out.find('\033') == std::string::npos);  // no colours in a file
  }
  SUBCASE("json") {
    const Said said = train(folder, common + "--json");
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    const auto events = lines_of(said.out);
    REQUIRE(events.size() == 4);
    CHECK(events[1]["event"] == "epoch");
    CHECK(events[2]["top1"].is_number());
    CHECK(said.out == bytes_of(folder / "run" / "events.jsonl"));
  }
}

TEST_CASE("a run goes on where nobody reads its output") {
  const TemporaryFolder folder;
  const Said said = tessera_program("train --out " + (folder / "run").string() + tiny +
                                    " --batch 16 --epochs 3 --verbose | head -1");
  CHECK(said.code == 0);
  CHECK(bytes_of(folder / "run" / "events.jsonl").find("\"finished\"") != std::string::npos);
}

TEST_CASE("a run goes on where its errors went to the same reader, who is gone") {
  const TemporaryFolder folder;
  const std::string command = program_path() + " train --out " + (folder / "run").string() + tiny +
                              " --batch 16 --epochs 3 --verbose",
                    code = folder / "code";
  CHECK(std::system(("( " + command + "; echo $? >" + code + " ) 2>&1 | head -1 >/dev/null").c_str()) == 0);
  CHECK(bytes_of(code) == "0\n");
  CHECK(bytes_of(folder / "run" / "events.jsonl").find("\"finished\"") != std::string::npos);
}

TEST_CASE("events that --json could not print are told of, and stand in the run") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryFolder folder;
  const std::string err = folder / "err";
  const int status =
      std::system((program_path() + " train --json --quiet --out " + (folder / "run").string() + tiny +
                   " --batch 16 --epochs 1 >/dev/full 2>" + err)
                      .c_str());
  CHECK(WEXITSTATUS(status) == 2);
  CHECK(bytes_of(err).find("standard output cannot be written: No space left on device") !=
        std::string::npos);
  CHECK(bytes_of(folder / "run" / "events.jsonl").find("\"finished\"") != std::string::npos);
}
