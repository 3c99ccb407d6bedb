// A watched run, as a person has one: its file, its report, its TensorBoard events.

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/commands/program.h"

using namespace tessera;

namespace {

const std::string tiny =
    "train --dataset shapes --image-size 16 --epochs 2 --batch 16 --set data.train_images=64"
    " --set data.validation_images=20 --set model.dim=16 --set model.depth=2 --set schedule.warmup_epochs=0"
    " --set model.attention.decay.kind=content --tensorboard";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string events_of(const std::filesystem::path& run) {
  for (const auto& entry : std::filesystem::directory_iterator(run))
    if (entry.path().filename().string().starts_with("events.out")) return bytes_of(entry.path());
  return "";
}

}  // namespace

TEST_CASE(
    "watch.every_steps writes watch.csv, and report and TensorBoard show it; without it there is none") {
  const TemporaryFolder folder;
  const std::string run = folder / "run", plain = folder / "plain";
  const Said said = tessera_program(tiny + " --set watch.every_steps=3 --out " + run);
  REQUIRE_MESSAGE(said.code == 0, said.err);
  REQUIRE(tessera_program(tiny + " --out " + plain).code == 0);
  CHECK(!std::filesystem::exists(std::filesystem::path(plain) / "watch.csv"));
  CHECK(bytes_of(folder / "run" / "metrics.csv") == bytes_of(folder / "plain" / "metrics.csv"));

  const std::vector<std::string> lines = lines_of(bytes_of(folder / "run" / "watch.csv"));
  REQUIRE(lines.size() > 20);
  CHECK(lines[0] ==
        "step,layer,head,activation_rms,gradient_rms,weight_rms,weight_gradient_rms,update_ratio,temperature,"
        "gate");
  for (const std::string step : {"1,", "3,", "6,"})
    for (const std::string layer : {"patch_embed,", "blocks.0,", "blocks.1,", "norm,", "head,"}) {
      const auto its = [&](const std::string& line) { return line.starts_with(step + layer); };
      CHECK(std::ranges::count_if(lines, its) == 1);
    }
  CHECK(std::ranges::none_of(lines, [](const std::string& line) { return line.starts_with("2,"); }));

  const std::string page = bytes_of(folder / "run" / "report.html");
  for (const char* title : {"Layers", "Activations", "Gradients of the weights", "Update : weight",
                            "Temperatures", "Gates", "blocks.1.attn, head 0", "loss a unit of activation"})
    CHECK_MESSAGE(has(page, title), title);
  CHECK(!has(bytes_of(folder / "plain" / "report.html"), "Update : weight"));

  const std::string events = events_of(run);
  for (const char* tag : {"watch/activation_rms/blocks.0", "watch/gradient_rms/head",
                          "watch/update_ratio/patch_embed", "watch/temperature/blocks.1.attn.head.2"})
    CHECK_MESSAGE(has(events, tag), tag);
  CHECK(!has(events_of(plain), "watch/"));
}

TEST_CASE("a watched run that is stopped and resumed has the rows of an unbroken one") {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole", broken = folder / "broken";
  REQUIRE(tessera_program(tiny + " --set watch.every_steps=2 --out " + whole).code == 0);
  REQUIRE(tessera_program(tiny + " --set watch.every_steps=2 --stop-after 5 --out " + broken).code == 0);
  const std::string before = bytes_of(folder / "broken" / "watch.csv");
  REQUIRE(tessera_program("train --threads 1 --resume " + broken).code == 0);
  const std::string after = bytes_of(folder / "broken" / "watch.csv");
  CHECK(after == bytes_of(folder / "whole" / "watch.csv"));
  CHECK(after.size() > before.size());
  CHECK(after.starts_with(before));
}

TEST_CASE("a report of a watch.csv that is another table names the line") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(tessera_program(tiny + " --set watch.every_steps=2 --out " + run).code == 0);
  const std::filesystem::path file = folder / "run" / "watch.csv";
  const std::string good = bytes_of(file);
  { std::ofstream(file, std::ios::app) << "9,blocks.0,,1"; }  // a line that is being written
  CHECK(tessera_program("report " + run).code == 0);
  { std::ofstream(file) << good << "9,blocks.0,,much,,,,,,\n"; }
  CHECK(has(tessera_program("report " + run).err, "'much' is no number"));
  { std::ofstream(file) << "a,b\n"; }
  CHECK(has(tessera_program("report " + run).err, "watch.csv: line 1: 'a,b', wanted 'step,layer"));
}
