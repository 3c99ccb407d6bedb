#include "apps/reporting/ablation.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <optional>

#include "tests/commands/running.h"

using namespace tessera;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> words_of(const TemporaryFolder& folder, const std::vector<std::string>& more) {
  put(folder / "tiny.json", R"({
    "model": {"preset": "vit", "dim": 16, "depth": 1, "attention": {"heads": 2}},
    "data": {"name": "shapes", "image_size": 16, "train_images": 64, "validation_images": 20},
    "batch": 16, "epochs": 3, "schedule": {"warmup_epochs": 0}})");
  std::vector<std::string> words{"ablate",
                                 "--recipe",
                                 (folder / "tiny.json").string(),
                                 "--out",
                                 (folder / "out").string(),
                                 "--grid",
                                 "model.attention.scale=fixed,learned"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += "'" + word + "' ";
  return text;
}

}  // namespace

TEST_CASE("a grid is every choice of its switches") {
  const auto switches = read_switches(
      {"model.attention.scale=fixed,learned", "augment.flip=true,false", "model.dim=[1,2],\"a,b\""});
  REQUIRE(switches.size() == 3);
  CHECK(switches[0].name == "scale");
  CHECK(switches[1].values == std::vector<Json>{true, false});
  CHECK(switches[2].values == std::vector<Json>{Json{1, 2}, "a,b"});
  const auto choices = choices_of(switches);
  REQUIRE(choices.size() == 8);
  CHECK(choice_text(switches, choices[1]) == "scale=fixed flip=true dim=a,b");
  CHECK(choice_folder(switches, choices[7]) == "scale=learned+flip=false+dim=a_b");
  const auto alike = read_switches({"model.dim=1", "model.prior.dim=2"});
  CHECK(alike[0].name == "model.dim");
  CHECK(alike[1].name == "model.prior.dim");
  for (const char* bad : {"", "key", "key=", "=1", "key=1,,2", "key=1,"})
    CHECK_THROWS_WITH_AS(read_switches({bad}), doctest::Contains("--grid '"), Error);
  CHECK_THROWS_WITH_AS(read_switches({"lr=1,2,1"}), doctest::Contains("comes twice"), Error);
  CHECK_THROWS_WITH_AS(read_switches({"lr=1", "lr=2"}), doctest::Contains("given twice"), Error);
}

TEST_CASE("mean and deviation over the seeds") {
  const Spread three = spread_of({0.25, 0.5, 0.75});
  CHECK(three.count == 3);
  CHECK(three.mean == doctest::Approx(0.5));
  CHECK(*three.deviation == doctest::Approx(0.25));
  CHECK(!spread_of({0.5}).deviation);
  CHECK(spread_of({}).count == 0);

  const auto switches = read_switches({"model.preset=vit,a|b,x"});
  const Json rows =
      ablation_rows(switches,
                    {{{.best = 0.75, .last = 0.5, .reason = ""}, {.best = 0.5, .last = 0.25, .reason = ""}},
                     {{.best = {}, .last = {}, .reason = "no such preset", .refused = true}, {}},
                     {{.best = 0.5, .last = 0.5, .reason = ""}, {}}},
                    2);
  CHECK(ablation_markdown(switches, rows, Task::classify) ==
        "| preset | runs | best top-1 (%) | last top-1 (%) | note |\n|---|---:|---:|---:|---|\n"
        "| vit | 2 | 62.50 ± 17.68 | 37.50 ± 17.68 |  |\n"
        "| a\\|b | 0 | - | - | refused: no such preset |\n"
        "| x | 1 | 50.00 | 50.00 | 1 of 2 runs to go |\n");
  CHECK(ablation_csv(switches, rows)
            .starts_with("preset,runs,best,best_deviation,last,last_deviation,note\n"
                         "vit,2,0.625,0.1767"));
}

namespace {

const std::vector<std::string> longer{"--seeds", "2", "--set", "data.train_images=2048"};

// Kills an ablation in its second cell; whether it was still under way.
bool kill_in_second_cell(const TemporaryFolder& folder) {
  const TemporaryFolder logs;
  const Running running(logs, words_of(folder, longer));
  const auto second = folder / "out" / "scale=learned" / "seed-0";
  REQUIRE(running.says("[2/4]"));
  for (int wait = 0; wait < 60000 && !std::filesystem::exists(second / "state.safetensors"); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGKILL);
  CHECK(running.wait().code == -1);
  return !has(bytes_of(second / "events.jsonl"), "\"finished\"");
}

}  // namespace

TEST_CASE("an ablation that is killed goes on: what is done is kept, what was broken off resumes") {
  const TemporaryFolder whole;
  std::vector<std::string> more = longer;
  more.push_back("--json");
  const Said said = tessera_program(joined(words_of(whole, more)));
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json()["rows"];
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CHECK(row["runs"] == 2);
    CHECK(row["note"].is_null());
    CHECK(row["last_deviation"].is_number());
  }
  CHECK(rows[1]["scale"] == "learned");
  CHECK(has(bytes_of(whole / "out" / "table.md"), "| fixed | 2 | "));

  std::optional<TemporaryFolder> parts;
  bool broken = false;  // the cell may have ended just before the kill
  for (int attempt = 0; attempt < 10 && !broken; ++attempt) broken = kill_in_second_cell(parts.emplace());
  REQUIRE(broken);
  const std::filesystem::path out = *parts / "out", first = out / "scale=fixed" / "seed-0";
  const auto written = std::filesystem::last_write_time(first / "last.safetensors");
  const Said rest = tessera_program(joined(words_of(*parts, more)));
  CAPTURE(rest.err);
  REQUIRE(rest.code == 0);
  CHECK(rest.json() == said.json());
  CHECK(std::filesystem::last_write_time(first / "last.safetensors") == written);
  CHECK(bytes_of(out / "table.csv") == bytes_of(whole / "out" / "table.csv"));
  for (const char* cell :
       {"scale=fixed/seed-0", "scale=fixed/seed-1", "scale=learned/seed-0", "scale=learned/seed-1"})
    for (const char* file : {"metrics.csv", "last.safetensors"})
      CHECK(bytes_of(out / cell / file) == bytes_of(whole / "out" / cell / file));
  CHECK(has(bytes_of(out / "scale=learned" / "seed-0" / "events.jsonl"), "\"resume\""));

  const Said other = tessera_program(joined(words_of(*parts, {"--seeds", "2", "--epochs", "4"})));
  CHECK(other.code == 2);
  CHECK(other.complains_of("holds another ablation"));
}

TEST_CASE("a signal ends an ablation with what there is") {
  const TemporaryFolder folder, logs;
  const Running running(logs, words_of(folder, {"--epochs", "100000"}));
  REQUIRE(running.says("epoch 1/100000"));
  running.send(SIGTERM);
  const Said said = running.wait();
  CHECK(said.code == 143);
  CHECK(said.complains_of("the same command goes on"));
  CHECK(has(bytes_of(folder / "out" / "table.md"), "1 of 1 runs to go"));
}

TEST_CASE("a choice that makes no sense is shown with its reason") {
  const TemporaryFolder folder;
  const Said said = tessera_program(
      joined(words_of(folder, {"--grid", "model.tokenizer.patch_size=4,5", "--json", "--epochs", "1"})));
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto rows = said.json()["rows"];
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["runs"] == 1);
  CHECK(rows[1]["runs"] == 0);
  CHECK(rows[1]["note"].get<std::string>().starts_with("refused: "));
  CHECK(has(bytes_of(folder / "out" / "table.md"), "refused: "));
  const Said seeds = tessera_program(joined(
      words_of(folder, {"--grid", "model.tokenizer.patch_size=4,5", "--seeds", "2", "--epochs", "1"})));
  const size_t refused = seeds.out.find("refused: ");
  REQUIRE(refused != std::string::npos);
  CHECK(refused < seeds.out.find("[1/4]"));  // two of four choices, with two seeds
  CHECK(std::string_view(seeds.out).substr(refused).find("[4/4]") != std::string_view::npos);
  CHECK(seeds.out.find("refused: ", seeds.out.find("[1/4]")) >= seeds.out.find("note"));  // in the table
  const TemporaryFolder none;
  const Said all = tessera_program(joined(words_of(none, {"--set", "model.dpeth=2", "--epochs", "1"})));
  CHECK(all.code == 2);
  CHECK(has(all.out, "dpeth"));
  CHECK(tessera_program(joined(words_of(none, {"--seeds", "0"}))).code == 2);
}
