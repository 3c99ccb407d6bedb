#include "apps/reporting/run_check.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "apps/training/session.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"
#include "tests/io/without_rights.h"
#include "tests/training/small_run.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

// The findings on a subject, as "verdict: message -> advice", a line each.
std::string said(const fs::path& run, const std::string& subject) {
  std::string text;
  for (const Diagnosis& d : check_run(run))
    if (d.subject == subject) text += d.verdict + ": " + d.message + " -> " + d.advice + "\n";
  return text;
}

// A run of two epochs of three steps, of which so many are done.
SmallRun run_in(const fs::path& path, int64_t steps) {
  const SmallRun run = small_run({{"model", small_vit}});
  train_in(path, run, {.steps = steps});
  return run;
}

void cut(const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 5); }

bool begins(const std::string& text, const std::string& with) { return text.starts_with(with); }
bool ends(const std::string& text, const std::string& with) { return text.ends_with(with + "\n"); }

}  // namespace

TEST_CASE("a folder that is none, or holds nothing of a run, is no run to examine") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { check_run(folder / "none"); }) == (folder / "none").string() + ": is no folder");
  fs::create_directory(folder / "config.json");
  CHECK_FALSE(looks_like_a_run(folder.path()));
  CHECK(error_of([&] { check_run(folder.path()); }) == folder.path().string() + ": holds no file of a run");
  put(folder / "metrics.csv", "");
  CHECK(looks_like_a_run(folder.path()));
  CHECK(said(folder.path(), "run") == "");  // neither a config nor a state to go on with
}

TEST_CASE("a whole run that is finished, and one that is not") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  run_in(run, 4);
  const std::string resume = "tessera train --resume " + run.string();
  CHECK(said(run, "config.json") == "ok: vit on shapes -> \n");
  CHECK(said(run, "state.safetensors") == "ok: after epoch 1, step 1 of the next -> \n");
  CHECK(said(run, "last.safetensors") == "ok: weights of epoch 1, after 3 steps of the run -> \n");
  CHECK(said(run, "metrics.csv") == "ok: 1 epochs -> \n");
  CHECK(said(run, "run") == "note: 1 of 2 epochs are done -> Go on with " + resume + "\n");
  train_in(run, small_run({{"model", small_vit}}));
  CHECK(said(run, "run") == "ok: finished -> \n");
  for (const Diagnosis& d : check_run(run)) {
    CAPTURE(d.subject);
    CHECK_FALSE(d.wrong());
    CHECK(to_json(d) ==
          Json{{"subject", d.subject}, {"verdict", d.verdict}, {"message", d.message}, {"advice", d.advice}});
  }
}

TEST_CASE("damaged states: what is left decides what to do") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", state = run / "state.safetensors",
                 previous = run / "state.previous.safetensors";
  run_in(run, 4);
  const std::string resume = "tessera train --resume " + run.string();
  const std::string good = bytes_of(state);
  cut(previous);
  CHECK(begins(said(run, previous.filename()), "WRONG: "));
  CHECK(ends(said(run, previous.filename()), " -> Nothing: the next epoch writes it anew"));
  cut(state);
  CHECK(said(run, "state.safetensors").find("the file is cut or damaged") != std::string::npos);
  CHECK(said(run, "state.safetensors")
            .find("The run cannot be gone on with. Its weights can begin another: "
                  "tessera train --init " +
                  run.string()) != std::string::npos);
  put(previous, good);
  CHECK(ends(said(run, "state.safetensors"),
             resume + " goes on from state.previous.safetensors, an epoch before"));
  fs::remove(state);
  CHECK(said(run, "state.safetensors") == "");
  CHECK(said(run, previous.filename()) == "ok: after epoch 1, step 1 of the next -> \n");
  fs::remove(previous);
  CHECK(said(run, "run") == "");
  put(state, good);
  fs::remove(run / "config.json");  // the state is read all the same
  CHECK(said(run, "state.safetensors") == "ok: after epoch 1, step 1 of the next -> \n");
  CHECK(begins(said(run, "config.json"), "WRONG: cannot open it: No such file or directory"));
  CHECK(said(run, "run") == "");
}

TEST_CASE("a state from before a change of --resume or --time is that of the run, and no other is") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  run_in(run, 4);
  Json config = read_json(run / "config.json");
  config["optimizer"]["lr"] = 0.5;
  write_json(run / "config.json", config);
  CHECK(said(run, "state.safetensors").find("config.json has been edited") != std::string::npos);
  const std::string events = bytes_of(run / "events.jsonl");
  put(run / "events.jsonl", events + "{\"event\": \"changed\", \"keys\": [\"optimizer.lr=0.5\"]}\n");
  CHECK(said(run, "state.safetensors") == "ok: after epoch 1, step 1 of the next -> \n");
  config["steps"] = 5;
  config["schedule"]["warmup_epochs"] = 0.5;
  write_json(run / "config.json", config);
  CHECK(said(run, "state.safetensors").find("steps is 5") != std::string::npos);
  put(run / "events.jsonl", bytes_of(run / "events.jsonl") + "{\"event\": \"fitted\", \"steps\": 5}\n");
  CHECK(said(run, "state.safetensors") == "ok: after epoch 1, step 1 of the next -> \n");
}

TEST_CASE("a state of the version before has no config to compare") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", state = run / "state.safetensors";
  run_in(run, 4);
  const TensorFile file = read_safetensors(state);
  write_safetensors(state, file.tensors,
                    {{"format", "tessera state 1"}, {"position", file.metadata.at("position")}});
  std::string bytes = bytes_of(state);
  bytes.replace(bytes.find("\"xxh3\""), 6, "\"none\"");
  put(state, bytes);
  CHECK(said(run, "state.safetensors") == "ok: after epoch 1, step 1 of the next -> \n");
}

TEST_CASE("damaged weights and tables are told with what else there is") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  run_in(run, 4);
  const std::string resume = "tessera train --resume " + run.string();
  const Json training[] = {Json{{"epoch", "x"}}, Json(3)};
  TensorFile last = read_safetensors(run / "last.safetensors");
  for (const Json& words : training) {
    last.metadata["training"] = words.dump();
    write_safetensors(run / "epoch-0001.safetensors", last.tensors, last.metadata);
    CHECK(said(run, "epoch-0001.safetensors") == "ok: weights -> \n");
  }
  cut(run / "epoch-0001.safetensors");
  put(run / ".hidden.safetensors", "no tensors");  // a file that is being written
  CHECK(said(run, ".hidden.safetensors") == "");
  CHECK(ends(said(run, "epoch-0001.safetensors"), "Take it from a copy; no other epoch writes it"));
  cut(run / "last.safetensors");
  CHECK(ends(said(run, "last.safetensors"), "Nothing: the next epoch writes it anew"));
  put(run / "metrics.csv", "epoch,loss\n");
  CHECK(said(run, "metrics.csv") ==
        "ok: 0 epochs -> \nWRONG: has 0 rows, the state is that after epoch 1 -> " + resume +
            " takes the rows that the state keeps\n");
  put(run / "metrics.csv", "epoch,loss\n1\n");
  CHECK(ends(said(run, "metrics.csv"),
             "has 1 fields, the first 2 -> " + resume + " takes the rows that the state keeps"));
  CHECK(ends(said(run, "run"), "1 of 2 epochs are done -> "));  // nothing is advised while something is wrong
  fs::remove(run / "state.safetensors");
  fs::remove(run / "state.previous.safetensors");
  CHECK(ends(said(run, "metrics.csv"), " -> Mend the line, or remove the file"));
  CHECK(ends(said(run, "epoch-0001.safetensors"),
             " -> Take it from a copy; nothing else in the folder holds these weights"));
  fs::remove(run / "metrics.csv");
  CHECK(said(run, "metrics.csv") == "");
}

TEST_CASE("weights that no epoch writes anew, and files of others, are not to be removed") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  train_in(run, small_run({{"model", small_vit}, {"data", {{"dir", folder.path().string()}}}}));
  CHECK(said(run, "data") == "");
  put(run / "mine.safetensors", "no tensors");
  CHECK(begins(said(run, "mine.safetensors"), "note: no file that a run writes: "));
  CHECK(ends(said(run, "mine.safetensors"), " -> "));
  cut(run / "best.safetensors");
  CHECK(
      ends(said(run, "best.safetensors"), "Take it from a copy; no epoch is left that would write it anew"));
  for (const char* name : {"best.safetensors", "state.safetensors", "events.jsonl"})
    fs::permissions(run / name, fs::perms(0));
  for (const fs::path& each : {folder.path(), run}) fs::permissions(each, fs::perms(0755));
  {
    const WithoutRights someone;
    if (!someone.another_user()) return;
    for (const char* name : {"best.safetensors", "state.safetensors", "events.jsonl"}) {
      CAPTURE(name);
      CHECK(begins(said(run, name), "WRONG: "));
      CHECK(ends(said(run, name), "Permission denied -> Change its owner or mode"));
    }
  }
}

TEST_CASE("weights from within an epoch, and data that has been moved, are told as what they are") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  train_in(run, small_run({{"model", small_vit}, {"data", {{"dir", "/moved away"}}}}), {.steps = 2});
  CHECK(said(run, "state.safetensors") == "ok: after epoch 0, step 2 of the next -> \n");
  CHECK(said(run, "last.safetensors") == "ok: weights of epoch 1, after 2 steps of the run -> \n");
  CHECK(said(run, "data") ==
        "WRONG: there is no /moved away, where config.json has the data -> Give --data DIR "
        "to train --resume, eval, diagnose and report\n");
}

TEST_CASE("a run that counts its steps has finished where its events say so") {
  const TemporaryFolder folder;
  const SmallRun steps = small_run({{"model", small_vit}, {"steps", 4}});
  train_in(folder / "run", steps);
  CHECK(begins(said(folder / "run", "run"), "note: 2 epochs are done"));
  {
    const Quiet quiet;
    Trainer trainer(steps.config, steps.dataset, {});
    RunFolder another = RunFolder::create(folder / "other", to_json(steps.config));
    run_session(trainer, another, {}, {}, "start");
  }
  CHECK(begins(said(folder / "other", "run"), "ok: finished"));
}

TEST_CASE("a run that is trained at the moment, in steps, or in a folder of others is told so") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  const SmallRun steps = small_run({{"model", small_vit}, {"steps", 9}});
  train_in(run, steps, {.steps = 4});
  CHECK(begins(said(run, "run"), "note: 1 epochs are done -> Go on with "));
  put(run / ".tessera-1-1.partial", "half");
  put(run / "events.jsonl", bytes_of(run / "events.jsonl") + "{\"event\": \"ep\n");
  CHECK(said(run, "run").find("note: 1 files that a killed process left half written") != std::string::npos);
  CHECK(said(run, "events.jsonl").find(" lines are not JSON, as a kill leaves one") != std::string::npos);
  CHECK(said(run, "lock") == "");
  const int events = open((run / "events.jsonl").c_str(), O_RDWR);
  REQUIRE(flock(events, LOCK_EX | LOCK_NB) == 0);
  CHECK(said(run, "lock") == "note: another process trains this run at the moment -> \n");
  CHECK(said(run, "run").find("epochs are done") == std::string::npos);
  close(events);
  fs::remove(run / "events.jsonl");
  CHECK(said(run, "events.jsonl") == "");
  fs::permissions(folder.path(), fs::perms(0755));
  for (const auto& entry : fs::directory_iterator(run)) fs::permissions(entry, fs::perms(0644));
  fs::permissions(run, fs::perms(0555));
  {
    const WithoutRights someone;
    CHECK(said(run, "run").find("WRONG: the folder cannot be written to -> Change its owner or mode") !=
          std::string::npos);
  }
  fs::permissions(run, fs::perms(0755));
}
