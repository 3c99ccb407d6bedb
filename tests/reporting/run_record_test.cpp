#include "apps/reporting/run_record.h"

#include <doctest/doctest.h>

#include <cmath>

#include "apps/training/log_marks.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

void put_run(const TemporaryFolder& folder, const std::string& metrics, const std::string& events = "") {
  put(folder / "config.json", R"({"model": {"arch": "vit"}, "data": {"name": "shapes"}, "seed": 3})");
  put(folder / "metrics.csv", metrics);
  put(folder / "events.jsonl", events);
}

}  // namespace

TEST_CASE("a run's record has its table and its events") {
  const TemporaryFolder folder;
  put_run(folder,
          "epoch,train_loss,validation_loss,validation_top1\n"
          "1,2.5,2.25,0.25\n2,2,,\n3,1.5,1.75,0.75\n4,1,2,0.5\n",
          "{\"event\":\"epoch\",\"epoch\":1,\"images_per_second\":10,\"seconds\":4}\n"
          "{\"event\":\"epoch\",\"epoch\":1,\"images_per_second\":20,\"seconds\":2}\n"
          "{\"event\":\"epoch\",\"epoch\":9,\"images_per_second\":1}\n{\"event\":\"epo");
  const RunRecord run = read_run(folder.path());
  CHECK(run.task == Task::classify);
  CHECK(run.epochs() == 4);
  CHECK(run.column("train_loss") == std::vector<double>{2.5, 2, 1.5, 1});
  CHECK(std::isnan(run.column("validation_top1")[1]));
  CHECK(std::isnan(run.column("absent")[0]));
  CHECK(best_epoch(run) == 3);
  CHECK(last_evaluated(run) == 4);
  CHECK(run.events.size() == 3);  // the line that was cut short is not there
  CHECK(run.epoch_events("images_per_second")[0] == 20);
  const Json summary = summary_of(run);
  CHECK(summary["best"] == 0.75);
  CHECK(summary["last"] == 0.5);
  CHECK(summary["best_epoch"] == 3);
  CHECK(summary["seconds"] == 2.0);
  CHECK(summary["images_per_second"] == 20.0);
}

TEST_CASE("a run's images a second are all of its images over all of their seconds") {
  const TemporaryFolder folder;
  put_run(folder, "epoch,train_loss\n1,2.5\n2,2\n3,1\n",
          "{\"event\":\"epoch\",\"epoch\":1,\"images_per_second\":100,\"seconds\":10}\n"
          "{\"event\":\"epoch\",\"epoch\":2,\"images_per_second\":500,\"seconds\":2}\n"
          "{\"event\":\"epoch\",\"epoch\":3,\"images_per_second\":900}\n");
  CHECK(summary_of(read_run(folder.path()))["images_per_second"].get<double>() ==
        doctest::Approx(2000.0 / 12));
}

TEST_CASE("a line of events that has been changed is left out, and said") {
  const TemporaryFolder folder;
  const Json first{{"event", "epoch"}, {"epoch", 1}, {"images_per_second", 15}};
  std::string changed = with_crc(first);
  changed.replace(changed.find("15"), 2, "95");
  CHECK(!contradicts_its_crc(with_crc(first)));
  CHECK(contradicts_its_crc(changed));
  put_run(folder, "epoch,train_loss\n1,2.5\n", changed + "\n" + with_crc({{"event", "finished"}}) + "\n");
  const RunRecord run = read_run(folder.path());
  CHECK(run.events.size() == 1);
  REQUIRE(run.changed.size() == 1);
  CHECK(run.changed[0].ends_with(
      "events.jsonl: 1 lines have been changed since they were written; they are left out"));
}

TEST_CASE("a run without an epoch has no figures") {
  const TemporaryFolder folder;
  put(folder / "config.json", R"({"model": {"arch": "dit"}})");
  const RunRecord run = read_run(folder.path());
  CHECK(run.task == Task::diffuse);
  CHECK(run.epochs() == 0);
  CHECK(best_epoch(run) == 0);
  CHECK(summary_of(run)["best"].is_null());
}

TEST_CASE("a folder that holds no run, and tables that are none, are named") {
  const auto refused = [](const std::string& config, const std::string& metrics, const char* why) {
    const TemporaryFolder folder;
    put_run(folder, metrics);
    put(folder / "config.json", config);
    CAPTURE(why);
    CHECK_THROWS_WITH_AS(read_run(folder.path()), doctest::Contains(why), Error);
  };
  const std::string good = R"({"model": {"arch": "vit"}})";
  refused(good, "epoch,loss\n1,2\n2\n", "line 3 has 1 fields, the first 2");
  refused(good, "epoch,loss\n1,two\n", "line 2: 'two' is not a number");
  refused(good, std::string("epoch\n1\0002\n", 10), "line 2: '1");
  refused("[]", "", "does not describe a run");
  refused(R"({"model": 3})", "", "does not describe a run");
  refused(R"({"data": {}})", "", "does not describe a run");
  refused(good, "epoch,loss\n1,1e999\n", "line 2: '1e999' is not a number");
  refused("{", "", "config.json");
  refused(R"({"model": {"preset": "sl-vjt"}})", "", "config.json: models: no preset 'sl-vjt'");
  const TemporaryFolder empty;
  CHECK_THROWS_WITH_AS(read_run(empty.path()),
                       doctest::Contains("is not a run folder: it has no config.json"), Error);
}

TEST_CASE("events and configs that say something else than expected say nothing") {
  const TemporaryFolder folder;
  put_run(
      folder, "epoch,validation_loss\r\n1,2\r\n2,\r\n",
      "{\"event\":\"epoch\",\"epoch\":\"1\",\"seconds\":1}\n{\"event\":\"epoch\",\"epoch\":0,\"seconds\":2}\n"
      "{\"event\":\"epoch\",\"epoch\":2,\"seconds\":\"3\"}\n{\"event\":5,\"epoch\":1,\"seconds\":4}\n"
      "{\"event\":\"start\",\"precision\":\"tf32\"}\n{\"event\":\"resume\",\"precision\":\"f16\"}\n[1]\n{]}"
      "\n");
  RunRecord run = read_run(folder.path());
  CHECK(run.events.size() == 6);
  REQUIRE(run.changed.size() == 1);
  CHECK(run.changed[0].find("events.jsonl: 1 lines have been changed") != std::string::npos);
  for (const double seconds : run.epoch_events("seconds")) CHECK(std::isnan(seconds));
  CHECK(precision_of(run) == Precision::tf32);
  CHECK(last_evaluated(run) == 1);
  CHECK(std::isnan(value_at(run, "validation_loss", 0)));
  CHECK(std::isnan(value_at(run, "validation_loss", 3)));
  CHECK(summary_of(run)["seconds"].is_null());
  run.events.clear();
  CHECK(precision_of(run) == Precision::f32);

  const auto names = [&](const char* config) {
    run.config = Json::parse(config);
    return run.model_name() + " on " + run.dataset();
  };
  CHECK(names(R"({"preset": "pit", "model": {"arch": "vit"}, "data": {"name": "mnist"}})") == "pit on mnist");
  CHECK(names(R"({"preset": "", "model": {"preset": "sl-vit"}, "data": {"name": 5}})") == "sl-vit on -");
  CHECK(names(R"({"preset": 5, "model": {"preset": 5, "arch": "vit"}, "data": {}})") == "vit on -");
  CHECK(names(R"({"model": {"arch": 5}, "data": "mnist"})") == "- on -");
  CHECK(names(R"({"model": "vit"})") == "- on -");
}

TEST_CASE("a run is judged by what its task is about, and of equal epochs the first is the best") {
  const TemporaryFolder folder;
  put_run(folder, "epoch,validation_loss,validation_mean_iou\n1,,0.5\n2,3,0.5\n3,2,0.25\n4,2,\n");
  RunRecord run = read_run(folder.path());
  run.task = Task::segment;
  CHECK((score_column(run.task).larger_is_better && best_epoch(run) == 1));
  run.task = Task::diffuse;
  CHECK((!score_column(run.task).larger_is_better && best_epoch(run) == 3));
}

TEST_CASE("tables that are not as the state was saved beside them are said, a damaged state is not") {
  const TemporaryFolder folder;
  put_run(folder, "epoch,loss\n1,2\n");
  write_safetensors(folder / "state.safetensors", {}, {{"metrics", "epoch,loss\n1,3\n"}});
  const std::vector<std::string> changed = read_run(folder.path()).changed;
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].find("metrics.csv: is not what it was when the state was saved") != std::string::npos);
  put(folder / "state.safetensors", "no tensors");
  CHECK(read_run(folder.path()).changed.empty());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(read_run(".").name == folder.path().filename().string());
  std::filesystem::current_path(before);
  std::filesystem::remove(folder / "config.json");
  std::filesystem::create_directory(folder / "config.json");
  CHECK_THROWS_WITH_AS(read_run(folder.path()), doctest::Contains("it has no config.json"), Error);
}
