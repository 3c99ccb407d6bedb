#include "apps/reporting/run_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "engine/core/error.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"
#include "tests/io/without_rights.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

void put_run(const fs::path& run, const Json& changes, const std::string& events = "",
             const std::string& metrics = "") {
  Json config{{"model", {{"arch", "vit"}}}, {"data", {{"name", "shapes"}}}};
  config.merge_patch(changes);
  fs::create_directories(run);
  put(run / "config.json", config.dump());
  put(run / "events.jsonl", events);
  if (!metrics.empty()) put(run / "metrics.csv", metrics);
}

std::vector<std::string> names(const RunList& list) {
  std::vector<std::string> all;
  for (const Json& row : list.rows) all.push_back(row["run"]);
  return all;
}

using Names = std::vector<std::string>;

std::string event(const std::string& name) { return "{\"event\":\"" + name + "\"}\n"; }

}  // namespace

TEST_CASE("the state of a run is what its last session said") {
  const TemporaryFolder folder;
  const auto state = [&](const std::string& events) {
    put_run(folder.path(), Json::object(), events);
    return state_of(read_run(folder.path()));
  };
  for (const std::string end : {"finished", "stopped", "failed"}) {
    CHECK(state(event("start") + event(end)) == end);
    CHECK(state(event(end) + "{\"event\":5}\n") == end);
    CHECK(state(event(end) + event("resume") + event("epoch")) == "broken off");
    CHECK(state(event(end) + event("start")) == "broken off");
  }
  CHECK(state("") == "broken off");
  const int events = open((folder / "events.jsonl").c_str(), O_RDWR);
  REQUIRE(flock(events, LOCK_EX | LOCK_NB) == 0);
  CHECK(state_of(read_run(folder.path())) == "training");
  close(events);
  fs::remove(folder / "events.jsonl");
  CHECK(state_of(read_run(folder.path())) == "broken off");
}

TEST_CASE("runs are found in the folder itself and four levels below it, and no deeper") {
  const TemporaryFolder folder;
  CHECK(list_runs(folder.path()).rows.empty());
  put_run(folder.path(), Json::object());
  put_run(folder / "1/2/3/4", Json::object());
  put_run(folder / "1/2/3/4/5/6", Json::object());
  put_run(folder / "damaged", Json::object());
  put(folder / "damaged/config.json", "{");
  put(folder / "1/file", "x");
  const RunList list = list_runs(folder.path());
  CHECK(names(list) == Names{folder.path().filename(), "1/2/3/4"});
  REQUIRE(list.warnings.size() == 1);
  CHECK(list.warnings[0].find("damaged/config.json: line 1") != std::string::npos);
  CHECK(list.keys.empty());
  CHECK(error_of([&] { list_runs(folder / "1/file"); }) ==
        (folder / "1/file").string() + ": is not a folder");
}

TEST_CASE("a folder that cannot be looked into is named, and hides no other") {
  const TemporaryFolder folder;
  put_run(folder / "a", Json::object());
  put_run(folder / "secret/b", Json::object());
  fs::permissions(folder.path(), fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(folder / "a"))
    fs::permissions(entry, fs::perms(0644));
  fs::permissions(folder / "a", fs::perms(0755));
  fs::permissions(folder / "secret", fs::perms(0));
  {
    const WithoutRights someone;
    const RunList list = list_runs(folder.path());
    if (someone.another_user() || geteuid() != 0) {
      CHECK(names(list) == Names{"a"});
      REQUIRE(list.warnings.size() == 1);
      CHECK(list.warnings[0] ==
            (folder / "secret").string() +
                ": cannot be looked into (Permission denied), so runs in it are left out");
    }
  }
  fs::permissions(folder / "secret", fs::perms(0755));
}

TEST_CASE("runs tell when they began, what differs in them and what has been changed") {
  const TemporaryFolder folder;
  put_run(folder / "a", {{"batch", 8}, {"about", "first"}, {"data", {{"dir", "/x"}}}},
          "{\"event\":\"start\",\"time\":5}\n{\"time\":\"2026-01-02\"}\n");
  put_run(folder / "b", {{"seed", 3}}, "{]}\n");
  const RunList list = list_runs(folder.path());
  REQUIRE(list.rows.size() == 2);
  CHECK((list.rows[0]["started"] == "2026-01-02" && list.rows[1]["started"] == ""));
  CHECK(list.keys == Names{"batch", "seed"});
  CHECK(list.rows[0]["differs"] == Json{{"batch", "8"}});
  CHECK(list.rows[1]["differs"] == Json{{"seed", "3"}});
  REQUIRE(list.warnings.size() == 1);
  CHECK(list.warnings[0].find("events.jsonl: 1 lines have been changed") != std::string::npos);
}

TEST_CASE("runs are sorted with the best first, and those without a value last") {
  const TemporaryFolder folder;
  const std::string head = "epoch,train_loss,validation_loss,validation_top1\n";
  put_run(folder / "a", {{"batch", 8}}, "", head + "1,3,2,0.5\n");
  put_run(folder / "b", {{"batch", 64}, {"smoothing", "x"}}, "", head + "1,1,3,0.75\n");
  put_run(folder / "c", {{"smoothing", "y"}});
  const auto sorted = [&](const std::string& key, bool reversed = false) {
    RunList list = list_runs(folder.path());
    sort_runs(list, key, reversed);
    std::string text;
    for (const std::string& name : names(list)) text += name;
    return text;
  };
  CHECK((sorted("best") == "bac" && sorted("best", true) == "abc"));
  CHECK((sorted("last") == "bac" && sorted("last_loss") == "abc" && sorted("train_loss") == "bac"));
  CHECK((sorted("run") == "abc" && sorted("run", true) == "cba"));
  CHECK((sorted("batch") == "bac" && sorted("batch", true) == "abc"));  // as numbers, not as text
  CHECK((sorted("smoothing") == "bca" && sorted("smoothing", true) == "cba"));
  CHECK(error_of([&] { sorted("batsch"); }) ==
        "runs: --sort batsch: no such column, and no key of the configs that differs; did you mean 'batch'?");
  RunList none;
  sort_runs(none, "anything", false);
  CHECK(none.rows.empty());
  RunList diffusion;  // whose score is a loss
  for (const double loss : {2.0, 1.0})
    diffusion.rows.push_back({{"score", "validation_loss"}, {"best", loss}, {"differs", Json::object()}});
  sort_runs(diffusion, "best", false);
  CHECK(diffusion.rows[0]["best"] == 1.0);
}

TEST_CASE("a list as CSV has empty fields for what is not known, and the notes of a run in one") {
  const TemporaryFolder folder;
  put_run(folder / "a", {{"batch", 8}});
  put_run(folder / "b", Json::object());
  put(folder / "b/notes.txt", "one\ntwo\n");
  const std::string csv = run_csv(list_runs(folder.path()));
  CHECK(csv.find(",batch,notes\na,broken off,vit,shapes,0,,") != std::string::npos);
  CHECK(csv.find(",8,\nb,") != std::string::npos);
  CHECK(csv.ends_with(",,one; two\n"));
}
