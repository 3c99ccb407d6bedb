// tessera doctor: each fault of a run folder and of a data folder is named, with what to do.

#include <doctest/doctest.h>

#include "tests/commands/program.h"
#include "tests/data/files.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

const std::string tiny =
    " --dataset shapes --image-size 16 --model vit --epochs 3 --batch 16 --seed 5 --set data.train_images=48"
    " --set data.validation_images=20 --set model.dim=8 --set model.depth=1 --stop-after 6"
    " --set schedule.warmup_epochs=1 --set 'model.attention={\"heads\":2,\"head_dim\":4}' ";

// The verdict on one subject, and all that is said of it.
nlohmann::json finding(const Said& said, const std::string& subject, const std::string& verdict) {
  const nlohmann::json all = said.json();
  for (const auto& each : all["findings"])
    if (each["subject"] == subject && each["verdict"] == verdict) return each;
  return nullptr;
}

void flip(const fs::path& file, size_t at) {
  std::string bytes = bytes_of(file);
  bytes[at] = static_cast<char>(bytes[at] ^ 16);
  put(file, bytes);
}

Said doctor(const fs::path& folder) { return tessera_program("doctor " + folder.string() + " --json"); }

}  // namespace

TEST_CASE("doctor: a whole run, and each file of it damaged in turn") {
  const TemporaryFolder folder;
  const fs::path whole = folder / "whole", run = folder / "run";
  REQUIRE(tessera_program("train --out " + whole.string() + tiny).code == 0);
  const Said good = doctor(whole);
  CAPTURE(good.err);
  CHECK(good.code == 0);
  CHECK(good.json()["passed"] == true);
  CHECK(finding(good, "run", "note")["message"] == "2 of 3 epochs are done");
  CHECK(finding(good, "run", "note")["advice"] == "Go on with tessera train --resume " + whole.string());

  for (const std::string name : {"config.json", "state.safetensors", "state.previous.safetensors",
                                 "last.safetensors", "best.safetensors"}) {
    CAPTURE(name);
    fs::copy(whole, run);
    flip(run / name, name == "config.json" ? 0 : fs::file_size(run / name) - 9);
    const Said said = doctor(run);
    CHECK(said.code == 1);
    const auto wrong = finding(said, name, "WRONG");
    REQUIRE(wrong.is_object());
    CHECK(!wrong["advice"].get<std::string>().empty());
    CHECK(said.json()["passed"] == false);
    CHECK(bytes_of(run / name) != bytes_of(whole / name));  // nothing was mended on the way
    fs::remove_all(run);
  }
  for (const std::string name : {"metrics.csv", "steps.csv"}) {  // a digit of the last row
    CAPTURE(name);
    fs::copy(whole, run);
    std::string text = bytes_of(run / name);
    char& digit = text[text.find_last_of("0123456789")];
    digit = digit == '7' ? '8' : '7';
    put(run / name, text);
    const Said said = doctor(run);
    CHECK(said.code == 1);
    CHECK(finding(said, "logs", "WRONG")["message"].get<std::string>().find(name) != std::string::npos);
    const Said runs = tessera_program("runs " + run.string());
    CHECK(runs.err.find(name + ": is not what it was when the state was saved") != std::string::npos);
    const Said again = tessera_program("train --resume " + run.string());
    CHECK(again.code == 0);
    CHECK(again.err.find(name) != std::string::npos);
    fs::remove_all(run);
  }
}

TEST_CASE("doctor: what is said of a damaged state is what --resume then does") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  REQUIRE(tessera_program("train --out " + run.string() + tiny).code == 0);
  flip(run / "state.safetensors", fs::file_size(run / "state.safetensors") - 9);
  const auto damaged = finding(doctor(run), "state.safetensors", "WRONG");
  REQUIRE(damaged.is_object());
  CHECK(damaged["advice"].get<std::string>().find("goes on from state.previous.safetensors") !=
        std::string::npos);
  CHECK(tessera_program("train --resume " + run.string()).code == 0);
  CHECK(doctor(run).code == 0);
  CHECK(finding(doctor(run), "run", "ok")["message"] == "finished");
  for (const char* name : {"state.safetensors", "state.previous.safetensors"})
    flip(run / name, fs::file_size(run / name) - 9);
  const auto lost = finding(doctor(run), "state.safetensors", "WRONG");
  CHECK(lost["advice"].get<std::string>().find("cannot be gone on with") != std::string::npos);
  CHECK(tessera_program("train --resume " + run.string()).code == 2);
}

TEST_CASE("doctor: an edited config, garbage among the metrics, lines that a kill left") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  REQUIRE(tessera_program("train --out " + run.string() + tiny).code == 0);
  put(run / "events.jsonl", bytes_of(run / "events.jsonl") + "{\"event\": \"ep\n");
  put(run / ".tessera-1-1.partial", std::string("half"));
  put(run / "metrics.csv", bytes_of(run / "metrics.csv") + "garbage\n");
  std::string config = bytes_of(run / "config.json");
  config.replace(config.find("\"seed\": 5"), 9, "\"seed\": 6");
  put(run / "config.json", config);
  const Said said = doctor(run);
  CHECK(said.code == 1);
  CHECK(finding(said, "metrics.csv", "WRONG").is_object());
  CHECK(finding(said, "events.jsonl", "note").is_object());
  CHECK(finding(said, "run", "note")["message"].get<std::string>().find("half written") != std::string::npos);
  const auto state = finding(said, "state.safetensors", "WRONG");
  REQUIRE(state.is_object());
  CHECK(state["message"].get<std::string>().find("seed is 6, the state was saved with 5") !=
        std::string::npos);
}

TEST_CASE("doctor: a config that names no model is told once") {
  const TemporaryFolder folder;
  put(folder / "config.json", std::string(R"({"model": {"preset": "sl-vjt"}})"));
  put(folder / "metrics.csv", std::string("epoch\n1\n"));
  const Said said = tessera_program("doctor " + folder.path().string());
  CHECK(said.code == 1);
  CHECK(said.out.find("WRONG  config.json: models: no preset 'sl-vjt'") != std::string::npos);
  CHECK(said.out.find("One thing is wrong.") != std::string::npos);
}

TEST_CASE("doctor: a data folder that is taken for what it is, and its faults") {
  const TemporaryFolder folder;
  for (const std::string name :
       {"photos/cat/1.png", "photos/cat/2.png", "photos/dog/1.png", "photos/dog/2.png"})
    put_png(folder / name, random_image(20, 20, std::hash<std::string>()(name)));
  const fs::path photos = folder / "photos";
  const Said good = doctor(photos);
  CAPTURE(good.out);
  CHECK(good.code == 0);
  CHECK(good.json()["dataset"] == "folder");
  put(photos / "dog/3.png", std::string("no picture"));
  const Said bad = doctor(photos);
  CHECK(bad.code == 1);
  CHECK(finding(bad, "unreadable", "WRONG")["advice"].get<std::string>().find("Replace") !=
        std::string::npos);
  const Said none = doctor(folder / "none");
  CHECK(none.code == 2);
  CHECK(none.complains_of("is no folder"));
  CHECK(doctor(folder.path()).code == 1);  // one class folder
}
