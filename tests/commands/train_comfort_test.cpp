#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/formats/image.h"
#include "tests/commands/short_run.h"

using namespace tessera;

namespace {

nlohmann::json config_of(const TemporaryFolder& folder) {
  return nlohmann::json::parse(bytes_of(folder / "run" / "config.json"));
}

double last_rate(const TemporaryFolder& folder) {
  const std::string text = bytes_of(folder / "run" / "metrics.csv");
  std::istringstream row(text.substr(text.rfind('\n', text.size() - 2) + 1));
  std::string field;
  for (int column = 0; column < 3; ++column) std::getline(row, field, ',');
  return std::stod(field);
}

}  // namespace

TEST_CASE("--time makes a run of the steps that fit, whose learning rate has decayed at its end") {
  const TemporaryFolder folder;
  const Said said = train(folder, "--batch 16 --time 4s --set schedule.min_lr=1e-5");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("time   0:04: ") != std::string::npos);
  const auto config = config_of(folder);
  const auto steps = config["steps"].get<int64_t>();
  CHECK(steps > 0);
  // The learning rate of the last step is near the lowest: one step of the cosine before its end.
  const double highest = config["optimizer"]["lr"], lowest = 1e-5;
  CHECK(last_rate(folder) < lowest + 0.2 * (highest - lowest));

  SUBCASE("a plain --resume finds it finished, and one by --epochs goes on") {
    const std::string run = (folder / "run").string();
    CHECK(tessera_program("train --resume " + run).out.find("has finished all") != std::string::npos);
    const int64_t more = (steps + 5) / 6 + 1;
    const Said on = tessera_program("train --resume " + run + " --epochs " + std::to_string(more));
    CAPTURE(on.err);
    CHECK(on.code == 0);
    CHECK(config_of(folder)["epochs"] == more);
    CHECK(config_of(folder)["steps"] == 0);
  }
}

TEST_CASE("--time is about time, and about nothing else at once") {
  check_refused("train --dataset shapes --time 500", "--stop-after and --set steps=N take steps");
  check_refused("train --dataset shapes --time soon", "90s, 10m or 2h");
  check_refused("train --dataset shapes --time 1m --epochs 3", "leave --epochs away");
  check_refused("train --dataset shapes --time 1m --dry-run", "give one of them");
  check_refused("train --dataset shapes --quiet --verbose", "--quiet");
  check_refused("train --dataset shapes --batch many", "wanted a whole number, or auto");
  check_refused("bench run --recipe demo --batch auto", "--batch auto is for tessera train");
}

TEST_CASE("--patience ends a run that gets no better, and its resumption says so") {
  const TemporaryFolder folder;
  // A learning rate that changes nothing: the first evaluation stays the best.
  const Said said = train(folder, "--batch 48 --epochs 9 --patience 2 --lr 1e-12 --set schedule.min_lr=0");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("epoch 3/9") != std::string::npos);
  CHECK(said.out.find("epoch 4/9") == std::string::npos);
  CHECK(said.out.find("Ended early: 2 evaluations") != std::string::npos);
  const std::string run = (folder / "run").string();
  CHECK(tessera_program("train --resume " + run).out.find("has ended after 3 epochs") != std::string::npos);
  const Said on = tessera_program("train --resume " + run + " --patience 3");
  CAPTURE(on.err);
  CHECK(on.out.find("epoch 4/9") != std::string::npos);
  CHECK(on.out.find("epoch 5/9") == std::string::npos);
}

TEST_CASE("a change of a run that has nothing left to train is refused, and changes no file") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "--batch 48 --epochs 2").code == 0);
  const auto run = folder / "run";
  const std::string resume = "train --resume " + run.string(), config = bytes_of(run / "config.json"),
                    events = bytes_of(run / "events.jsonl"), state = bytes_of(run / "state.safetensors");
  for (const char* change : {"--lr 0.5", "--set eval_every=2", "--patience 9"})
    check_refused(resume + " " + change, "nothing is left to train");
  check_refused(resume + " --lr 0.5",
                "optimizer.lr=0.5, as 2 epochs are done and they are all of its 2; give "
                "--epochs N, more than 2");
  check_refused(resume + " --epochs 1",
                "stands after 2 epochs, behind the end of a run of 1; give --epochs N");
  CHECK(bytes_of(run / "config.json") == config);
  CHECK(bytes_of(run / "events.jsonl") == events);
  CHECK(bytes_of(run / "state.safetensors") == state);
  const Said same = tessera_program(resume + " --epochs 2");
  CHECK(same.code == 0);
  CHECK(same.out.find("has finished all of its 2 epochs") != std::string::npos);
  const Said json = tessera_program(resume + " --json");
  CHECK(json.code == 0);
  CHECK(json.json() == nlohmann::json{{"event", "finished"}, {"epoch", 2}, {"step", 0}});
  CHECK(json.err.find("has finished all of its 2 epochs") != std::string::npos);
}

TEST_CASE("--resume takes --set after --epochs, as a new run does") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "--batch 48 --epochs 2").code == 0);
  const std::string run = (folder / "run").string();
  const Said said = tessera_program("train --resume " + run + " --epochs 3 --set epochs=4 --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(lines_of(said.out).front()["keys"] == nlohmann::json{"epochs=3", "epochs=4"});
  CHECK(config_of(folder)["epochs"] == 4);
  CHECK(lines_of(said.out).back()["epoch"] == 4);
}

TEST_CASE("--batch auto takes a power of two that leaves steps in an epoch") {
  const TemporaryFolder folder;
  const Said said = train(folder, "--batch auto --epochs 1 --stop-after 1");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("batch  8 (auto)") != std::string::npos);  // 96 images: fifty steps are not to be had
  CHECK(config_of(folder)["batch"] == 8);
}

TEST_CASE("a run that stops in its first epoch leaves weights that can be used") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "--batch 16 --stop-after 2").code == 0);
  const Said said = tessera_program("eval " + (folder / "run").string() + " --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json()["images"] == 40);
}

TEST_CASE("--dry-run does every phase and leaves nothing") {
  const TemporaryFolder folder;
  const Said said = tessera_program(
      "train --dry-run --json --batch 16 --epochs 3 --out " + (folder / "run").string() + tiny,
      "TMPDIR=" + folder.path().string());
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(folder.entries() == 0);
  std::vector<std::string> phases;
  const auto result = said.json();
  for (const auto& row : result["phases"]) phases.push_back(row["phase"]);
  CHECK(phases == std::vector<std::string>{"data", "step", "evaluation", "checkpoint", "report", "resume"});
  CHECK(result["steps"] == 18);
  CHECK(result["seconds"].get<double>() > 0);
}

TEST_CASE("--overfit-batch tells a model that learns its batch from one that cannot") {
  const TemporaryFolder folder;
  const std::string common =
      "train --overfit-batch --json --batch 8 --out " + (folder / "run").string() + tiny;
  const Said said = tessera_program(common + " --lr 0.005");
  CAPTURE(said.err);
  CAPTURE(said.out);
  CHECK(said.code == 0);
  CHECK(said.json()["learned"] == true);
  CHECK(said.json()["last_loss"].get<double>() <= 0.1 * said.json()["first_loss"].get<double>());
  const Said still = tessera_program(common + " --lr 1e-9 --set schedule.min_lr=0 --set steps=12");
  CHECK(still.code == 1);
  CHECK(still.json()["learned"] == false);
  CHECK(folder.entries() == 0);
}

TEST_CASE("a preset's name stays with the run") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "--batch 16 --epochs 2 --stop-after 1").code == 0);
  CHECK(config_of(folder)["preset"] == "sl-vit");
  const Said said = tessera_program("train --resume " + (folder / "run").string());
  CHECK(said.out.find("model  sl-vit, ") != std::string::npos);
}

TEST_CASE("help, -V and a number that is none are answered") {
  CHECK(tessera_program("help train").out.find("--recipe") != std::string::npos);
  CHECK(tessera_program("-V").out.starts_with("tessera "));
  check_refused("train --epochs three", "--epochs three: is not a number");
}

TEST_CASE("a folder with several faults names them all at once") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "empty"}) std::filesystem::create_directory(folder / name);
  for (const char* name : {"a/one.gif", "a/two.webp"}) put(folder / name, "no picture");
  const Said said = tessera_program("data check folder " + folder.path().string());
  CHECK(said.code != 0);
  for (const char* name : {"one.gif", "two.webp", "b holds no JPEG", "empty holds no JPEG"})
    CHECK((said.out + said.err).find(name) != std::string::npos);
}

TEST_CASE("train --model refuses what holds weights, and tells how to go on from them") {
  const TemporaryFolder run;
  const std::string folder = run.path().string();
  const auto said = [](const std::string& model) {
    return tessera_program("train --recipe demo --dry-run --model " + model);
  };
  CHECK(said(folder).complains_of(" is a folder, and a model is a preset or a config (.json)"));
  put(run / "config.json", R"({"about": "a run", "model": {"preset": "no-such-preset"}})");
  for (const std::string& model : {folder, folder + "/best.safetensors"})
    CHECK(said(model).complains_of("--model " + folder + "/config.json --init " + model));
  CHECK(said(folder + "/config.json").complains_of("no preset 'no-such-preset'"));  // the run's model alone
}

TEST_CASE("a preset's name is one beside a folder of that name too") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "vit");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(tessera_program("summary vit").code == 0);
  CHECK(tessera_program("train --dataset shapes --model vit --print-config").code == 0);
  std::filesystem::current_path(before);
}

TEST_CASE("damaged pictures are named before the first step, and counted by data info") {
  const TemporaryFolder folder;
  Image image(8, 8);
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 4; ++i) {
      const auto path = folder / "data" / name / (std::to_string(i) + ".png");
      std::filesystem::create_directories(path.parent_path());
      std::ranges::fill(image.pixels, static_cast<uint8_t>(20 * i));
      write_png(path, image);
    }
  for (const char* name : {"data/a/0.png", "data/b/3.png"}) put(folder / name, "no picture");
  const std::string data = (folder / "data").string();
  const Said said = tessera_program("train --dataset folder --data " + data + " --model sl-vit --out " +
                                    (folder / "run").string());
  CHECK(said.code == 2);
  CHECK(said.complains_of("2 of 8 picture files cannot be read"));
  for (const char* name : {"a/0.png", "b/3.png"}) CHECK(said.complains_of(name));
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
  const Said info = tessera_program("data info folder " + data + " --json");
  CAPTURE(info.err);
  REQUIRE(info.code == 0);
  CHECK(info.json()["damaged"].size() == 2);
}
