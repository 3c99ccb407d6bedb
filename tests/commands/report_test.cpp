#include <doctest/doctest.h>

#include "tests/commands/program.h"
#include "tests/commands/running.h"

using namespace tessera;

namespace {

const std::string tiny_vit =
    "train --dataset shapes --image-size 16 --epochs 2 --batch 16 --set data.train_images=32"
    " --set data.validation_images=20 --set model.dim=16 --set model.depth=1 --set schedule.warmup_epochs=0"
    " --out ";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

// What every page must be: one file that needs no other, with every tag closed that is counted here.
void check_page(const std::string& html) {
  CHECK(html.starts_with("<!DOCTYPE html>"));
  CHECK(html.ends_with("</html>\n"));
  for (const char* outside : {"http://", "https://", "<link", "src=\"/", "@import"})
    CHECK(!has(html, outside));
  for (const char* tag : {"section", "table", "tr", "svg", "div", "figure", "details"}) {
    CAPTURE(tag);
    CHECK(count(html, "<" + std::string(tag) + ">") + count(html, "<" + std::string(tag) + " ") ==
          count(html, "</" + std::string(tag) + ">"));
  }
}

}  // namespace

TEST_CASE("a finished run has a report: curves, classes, mistakes, config") {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  const Said trained = tessera_program(tiny_vit + run);
  CAPTURE(trained.err);
  REQUIRE(trained.code == 0);
  CHECK(has(trained.out, "The report is " + run + "/report.html"));
  const std::string html = bytes_of(folder / "run" / "report.html");
  check_page(html);
  for (const char* part :
       {">Loss<", ">Accuracy<", ">Learning rate<", ">Throughput<", ">Confusion<", ">Classes<",
        "Worst mistakes", "best top-1", "weight_decay", "warmup_epochs", "triangle"})
    CHECK_MESSAGE(has(html, part), part);
  const int waited = has(html, ">Waiting for data<");  // a chart where an epoch did
  CHECK(count(html, "<svg class=\"chart\"") == 5 + waited);
  CHECK(count(html, "data:image/png;base64,") >= 5);  // of 20 pictures, by a model that knows little

  std::filesystem::remove(folder / "run" / "report.html");
  const Said again = tessera_program("report " + run);
  CAPTURE(again.err);
  REQUIRE(again.code == 0);
  CHECK(bytes_of(folder / "run" / "report.html") == html);
}

TEST_CASE("several runs are compared") {
  const TemporaryFolder folder;
  const std::string first = (folder / "first").string(), second = (folder / "second").string();
  REQUIRE(tessera_program(tiny_vit + first).code == 0);
  REQUIRE(tessera_program(tiny_vit + second + " --lr 0.005 --set epochs=3").code == 0);
  const std::string out = (folder / "both.html").string();
  const Said said = tessera_program("report " + first + " " + second + " --json --out " + out);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto json = said.json();
  CHECK(json["report"] == out);
  REQUIRE(json["runs"].size() == 2);
  CHECK(json["runs"][1]["epochs"] == 3);
  CHECK(json["runs"][0]["best"] >= json["runs"][0]["last"]);
  const std::string html = bytes_of(out);
  check_page(html);
  CHECK(has(html, "second, validation"));
  CHECK(has(html, "<td>optimizer.lr</td><td>0.003</td><td>0.005</td>"));
  CHECK(!has(html, "<td>optimizer.weight_decay</td>"));
  const Said table = tessera_program("report " + first + " " + second + " --out " + out);
  CHECK(has(table.out, "images/s"));
}

TEST_CASE("a run whose data is gone still has its curves") {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  REQUIRE(tessera_program(tiny_vit + run).code == 0);
  std::string config = bytes_of(folder / "run" / "config.json");
  config.replace(config.find("\"shapes\""), 8, "\"folder\"");
  config.replace(config.find("\"dir\": \"\""), 9, "\"dir\": \"/nowhere\"");
  put(folder / "run" / "config.json", config);
  const Said said = tessera_program("report " + run);
  CHECK(said.code == 0);
  CHECK(said.complains_of("/nowhere"));
  const std::string html = bytes_of(folder / "run" / "report.html");
  check_page(html);
  CHECK(has(html, "No classes and no pictures: "));
  CHECK(has(html, ">Loss<"));
  const Said asked = tessera_program("report " + run + " --data /nowhere/else");
  CHECK(asked.code == 2);
  CHECK(asked.complains_of("/nowhere/else"));
}

TEST_CASE("report refuses what is no run") {
  const TemporaryFolder folder;
  const Said none = tessera_program("report " + folder.path().string());
  CHECK(none.code == 2);
  CHECK(none.complains_of("config.json"));
  put(folder / "config.json", R"({"model": {"arch": "vit"}, "about": "<script>alert(1)</script>"})");
  const Said bare = tessera_program("report " + folder.path().string());
  CHECK(bare.code == 0);
  const std::string html = bytes_of(folder / "report.html");
  check_page(html);
  CHECK(has(html, "No epoch is finished yet."));
  CHECK(!has(html, "<script>alert"));
  CHECK(!has(html, ">Learning rate<"));
  put(folder / "steps.csv", "step,epoch,loss,lr,gradient_norm\n1,0.1,2.5,1e-06,3\n2,0.2,,2e-06,4\n");
  REQUIRE(tessera_program("report " + folder.path().string()).code == 0);
  const std::string stepwise = bytes_of(folder / "report.html");
  check_page(stepwise);
  for (const char* title : {">Loss<", ">Learning rate<", ">Gradient norm<"}) CHECK(has(stepwise, title));
  std::filesystem::create_directory(folder / "dit");
  put(folder / "dit" / "config.json", R"({"model": {"arch": "dit"}})");
  const Said mixed = tessera_program("report " + folder.path().string() + " " + (folder / "dit").string());
  CHECK(mixed.code == 2);
  CHECK(mixed.complains_of("compare runs of one kind"));
}

TEST_CASE("a run that is being trained can be followed, and its last page is the whole one") {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  std::vector<std::string> words{"train",
                                 "--out",
                                 run,
                                 "--dataset",
                                 "shapes",
                                 "--image-size",
                                 "16",
                                 "--epochs",
                                 "500",
                                 "--set",
                                 "batch=16",
                                 "--set",
                                 "data.train_images=64",
                                 "--set",
                                 "data.validation_images=20"};
  const Running training(folder, words);
  REQUIRE(training.says("epoch 2/500"));
  const TemporaryFolder other;
  Running report(other, {"report", run, "--follow", "1", "--out", (other / "page.html").string()});
  REQUIRE(report.says("Ctrl-C ends this"));
  const auto page = [&] {
    return std::filesystem::exists(other / "page.html") ? bytes_of(other / "page.html") : "";
  };
  while (!has(page(), "</html>")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  check_page(page());
  CHECK(has(page(), "<meta http-equiv=\"refresh\" content=\"1\">"));
  CHECK(has(page(), "The run is being trained"));
  training.send(SIGTERM);
  training.wait();
  const Said said = report.wait();
  CHECK(said.code == 0);
  CHECK(!has(page(), "http-equiv=\"refresh\""));
  CHECK(has(page(), ">Classes<"));
}
