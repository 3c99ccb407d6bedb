#include <doctest/doctest.h>

#include <algorithm>

#include "tests/commands/program.h"

using namespace tessera;

namespace {

// A run folder as its files tell it: two epochs, the second with these scores.
void put_run(const TemporaryFolder& folder, const std::string& name, double lr, double top1,
             const std::string& ending) {
  const std::filesystem::path run = folder / name;
  std::filesystem::create_directories(run);
  const nlohmann::json config{{"model", {{"arch", "vit"}, {"num_classes", 10}}},
                              {"preset", "sl-vit"},
                              {"data", {{"name", "shapes"}}},
                              {"optimizer", {{"lr", lr}}}};
  put(run / "config.json", config.dump());
  put(run / "metrics.csv",
      "epoch,step,lr,train_loss,train_accuracy,gradient_norm,skipped,validation_loss,validation_top1,"
      "validation_top5\n1,6,0.1,2,0.2,1,0,2,0.1,0.5\n2,12,0.1,1,0.5,1,0,1.5," +
          std::to_string(top1) + ",0.9\n");
  put(run / "events.jsonl", "{\"event\":\"start\",\"time\":\"2026-01-02T03:04:05Z\"}\n{\"event\":\"" +
                                ending + "\",\"time\":\"2026-01-02T03:05:05Z\"}\n");
}

struct Runs {
  TemporaryFolder folder;
  Runs() {
    put_run(folder, "a", 0.01, 0.4, "finished");
    put_run(folder, "deep/b", 0.001, 0.7, "stopped");
  }
  std::string call(const std::string& more) const { return "runs " + folder.path().string() + " " + more; }
};

std::vector<std::string> names(const nlohmann::json& rows) {
  std::vector<std::string> all;
  for (const auto& row : rows) all.push_back(row["run"]);
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("runs lists the runs of a folder, the best first, with what differs") {
  const Runs runs;
  const Said said = tessera_program(runs.call("--json"));
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json();
  REQUIRE(names(rows) == Names{"deep/b", "a"});
  CHECK(rows[0]["best"] == 0.7);
  CHECK(rows[0]["best_epoch"] == 2);
  CHECK(rows[0]["state"] == "stopped");
  CHECK(rows[1]["state"] == "finished");
  CHECK(rows[0]["model"] == "sl-vit");
  CHECK(rows[0]["differs"] == nlohmann::json{{"optimizer.lr", "0.001"}});
  const Said table = tessera_program(runs.call(""));
  CHECK(table.out.find("deep/b: optimizer.lr=0.001") != std::string::npos);
  CHECK(table.out.find("70.0 %") != std::string::npos);
}

TEST_CASE("runs sorts by columns and by keys of the configs") {
  const Runs runs;
  const auto sorted = [&](const std::string& more) {
    return names(tessera_program(runs.call("--json " + more)).json());
  };
  CHECK(sorted("--reverse") == Names{"a", "deep/b"});
  CHECK(sorted("--sort run") == Names{"a", "deep/b"});
  CHECK(sorted("--sort optimizer.lr") == Names{"a", "deep/b"});
  CHECK(sorted("--sort optimizer.lr --reverse") == Names{"deep/b", "a"});
  check_refused(runs.call("--sort optimizer.lrr"), "did you mean 'optimizer.lr'");
}

TEST_CASE("runs prints CSV with a column for every key that differs, and keeps notes") {
  const Runs runs;
  const std::string a = (runs.folder / "a").string();
  REQUIRE(tessera_program("runs " + a + " --note 'labels, of class 3'").code == 0);
  const std::string csv = tessera_program(runs.call("--csv")).out;
  CHECK(csv.starts_with("run,state,model,dataset,"));
  CHECK(csv.find(",optimizer.lr,notes\n") != std::string::npos);
  CHECK(csv.find("labels, of class 3\"") != std::string::npos);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(tessera_program(runs.call("")).out.find("note of a: ") != std::string::npos);
}

TEST_CASE("runs names a folder that is damaged, one without runs, and none at all") {
  const Runs runs;
  std::filesystem::create_directories(runs.folder / "c");
  put(runs.folder / "c" / "config.json", "{\"model\": 3}");
  const Said said = tessera_program(runs.call("--json"));
  CHECK(said.code == 0);
  CHECK(said.json().size() == 2);
  CHECK(said.err.find("no object \"model\"") != std::string::npos);
  const TemporaryFolder empty;
  CHECK(tessera_program("runs " + empty.path().string()).out.find("holds no runs") != std::string::npos);
  check_refused("runs /no/such/folder", "is not a folder");
  check_refused("runs " + empty.path().string() + " --note hello", "is not a run folder");
  for (const char* option : {"--csv", "--json", "--reverse", "--sort best"})
    check_refused("runs " + empty.path().string() + " --note hello " + option, "excludes");
}
