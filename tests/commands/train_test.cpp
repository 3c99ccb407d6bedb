#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/commands/running.h"

using namespace tessera;

namespace {

// 3 epochs of 6 steps that take moments, with all that a state must hold: drop path and an average.
const std::string tiny =
    " --dataset shapes --image-size 16 --model sl-vit --epochs 3 --batch 16 --seed 5"
    " --set data.train_images=96 --set data.validation_images=40 --set model.dim=16 --set model.depth=2"
    " --set 'model.attention={\"heads\":2,\"head_dim\":8}' --set model.drop_path=0.2 --set ema=0.9"
    " --set schedule.warmup_epochs=1 --set micro_batch=8 --set checkpoint.every_steps=1";

Said train(const TemporaryFolder& folder, const std::string& run, const std::string& more = "") {
  return tessera_program("train --out " + (folder / run).string() + tiny + " " + more);
}

Said resume(const TemporaryFolder& folder, const std::string& run, const std::string& more = "") {
  return tessera_program("train --resume " + (folder / run).string() + " " + more);
}

void check_same_run(const TemporaryFolder& folder, const std::string& a, const std::string& b) {
  for (const char* name :
       {"metrics.csv", "last.safetensors", "best.safetensors", "state.safetensors", "config.json"}) {
    CAPTURE(name);
    const std::string bytes = bytes_of(folder / a / name);
    CHECK(!bytes.empty());
    CHECK(bytes == bytes_of(folder / b / name));
  }
}

int64_t lines_of(const std::filesystem::path& path) {
  const std::string text = bytes_of(path);
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

TEST_CASE("a run trains and leaves all of its files") {
  const TemporaryFolder folder;
  const Said said = train(folder, "run");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("epoch 3/3") != std::string::npos);
  CHECK(said.out.find(" threads, f32\n") != std::string::npos);
  CHECK(said.out.find("Done in f32: best top-1") != std::string::npos);
  CHECK(said.out.find("tessera eval " + (folder / "run").string()) != std::string::npos);
  CHECK(said.out.find('\r') == std::string::npos);  // plain lines where it is piped
  CHECK(lines_of(folder / "run" / "metrics.csv") == 4);
  CHECK(lines_of(folder / "run" / "events.jsonl") == 5);  // start, 3 epochs, finished
  const auto config = nlohmann::json::parse(bytes_of(folder / "run" / "config.json"));
  CHECK(config["model"]["arch"] == "vit");
  CHECK(config["model"]["num_classes"] == 10);
  CHECK(config["seed"] == 5);

  SUBCASE("its config repeats it") {
    const Said again = tessera_program("train --recipe " + (folder / "run" / "config.json").string() +
                                       " --out " + (folder / "again").string());
    CAPTURE(again.err);
    REQUIRE(again.code == 0);
    check_same_run(folder, "run", "again");
  }
  SUBCASE("its folder is not written over") {
    const Said again = train(folder, "run");
    CHECK(again.code == 2);
    CHECK(again.complains_of("holds a run already"));
    CHECK(again.complains_of("--resume"));
  }
  SUBCASE("there is nothing to go on with") {
    const Said again = resume(folder, "run");
    CHECK(again.code == 0);
    CHECK(again.out.find("has finished all of its 3 epochs") != std::string::npos);
  }
  SUBCASE("eval and predict take its checkpoint") {
    const Said eval = tessera_program("eval " + (folder / "run").string() + " --json");
    CAPTURE(eval.err);
    REQUIRE(eval.code == 0);
    const auto result = eval.json();
    CHECK(result["images"] == 40);
    CHECK(result["classes"].size() == 10);
    CHECK(result["confusion"].size() == 10);
    const Said table = tessera_program("eval " + (folder / "run" / "last.safetensors").string());
    CHECK(table.code == 0);
    CHECK(table.out.find("top-1") != std::string::npos);
    CHECK(table.out.find("Confusion") != std::string::npos);
    CHECK(table.out.find("hexagon") != std::string::npos);
  }
}

TEST_CASE("a run that is broken off anywhere ends with the same bytes") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "whole", "--threads 2").code == 0);

  SUBCASE("within an epoch, on another number of threads") {
    const Said stopped = train(folder, "parts", "--threads 1 --stop-after 3");
    CHECK(stopped.code == 0);
    CHECK(stopped.out.find("Stopped in epoch 1 after step 3") != std::string::npos);
    CHECK(stopped.out.find("--resume " + (folder / "parts").string()) != std::string::npos);
    CHECK(resume(folder, "parts", "--stop-after 6 --threads 2").code == 0);
    CHECK(resume(folder, "parts", "--threads 1").code == 0);
  }
  SUBCASE("at the end of an epoch, before its evaluation") {
    CHECK(train(folder, "parts", "--stop-after 6").code == 0);
    CHECK(resume(folder, "parts").code == 0);
  }
  SUBCASE("killed without a word after an epoch") {
    CHECK(train(folder, "parts", "--stop-after 9").code == 0);
    const std::string state = bytes_of(folder / "parts" / "state.safetensors");
    CHECK(resume(folder, "parts").code == 0);
    put(folder / "parts" / "state.safetensors",
        state);  // as if the files since had not been followed by a state
    CHECK(resume(folder, "parts").code == 0);
  }
  SUBCASE("killed at any moment") {
    std::vector<std::string> words{"train"};
    std::istringstream given("--out " + (folder / "parts").string() + tiny);
    for (std::string word; given >> word;) {
      std::erase(word, '\'');  // the shell's
      words.push_back(word);
    }
    const Running program(folder, words);
    CHECK(program.says("epoch 2/3"));
    program.send(SIGKILL);
    program.wait();
    CHECK(resume(folder, "parts").code == 0);
  }
  SUBCASE("killed before the first state") {
    CHECK(train(folder, "parts", "--stop-after 1").code == 0);
    std::filesystem::remove(folder / "parts" / "state.safetensors");
    const Said again = resume(folder, "parts");
    CHECK(again.code == 0);
    CHECK(again.out.find("begins anew") != std::string::npos);
  }
  check_same_run(folder, "whole", "parts");
}

TEST_CASE("a run goes on in the precision that it began in, unless another is given, which is said") {
  const TemporaryFolder folder;
  REQUIRE(train(folder, "whole", "--precision bf16").code == 0);
  REQUIRE(train(folder, "parts", "--precision bf16 --stop-after 4").code == 0);
  SUBCASE("the state says which") {
    const Said again = resume(folder, "parts");
    CHECK(again.err == "");
    CHECK(again.out.find(" threads, bf16") != std::string::npos);
    check_same_run(folder, "whole", "parts");
  }
  SUBCASE("before the first state its events do") {
    std::filesystem::remove(folder / "parts" / "state.safetensors");
    CHECK(resume(folder, "parts").code == 0);
    check_same_run(folder, "whole", "parts");
  }
  SUBCASE("another is taken, and said") {
    const Said again = resume(folder, "parts", "--precision f32");
    CHECK(again.code == 0);
    CHECK(again.err.find("the run was computing in bf16 and goes on in f32, with other bits") !=
          std::string::npos);
  }
}

TEST_CASE("a signal ends the step, saves, and says how to go on") {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    std::filesystem::remove_all(run);
    const Running program(
        folder, {"train", "--dataset", "shapes", "--out", run, "--epochs", "20000", "--batch", "16",
                 "--image-size", "16", "--set", "data.train_images=64", "--set", "data.validation_images=10",
                 "--set", "model.dim=16", "--set", "model.depth=1"});
    REQUIRE(program.says("epoch 2/20000"));
    program.send(signal);
    const Said said = program.wait();
    CAPTURE(said.err);
    CHECK(said.code == 128 + signal);
    CHECK(said.out.find("tessera train --resume " + run) != std::string::npos);
    const Said more = tessera_program("train --resume " + run + " --stop-after 2");
    CHECK(more.code == 0);
    CHECK(more.out.find("from   epoch") != std::string::npos);
  }
}

TEST_CASE("only a second Ctrl-C does not wait for the step to end") {
  const TemporaryFolder folder;
  const std::string run = (folder / "run").string();
  const auto signalled = [&](std::initializer_list<int> signals) {
    std::filesystem::remove_all(run);
    const Running program(
        folder, {"train", "--dataset", "shapes", "--out", run, "--batch", "128", "--set",
                 "data.train_images=256", "--set", "data.validation_images=10", "--set", "model.depth=4"});
    REQUIRE(program.says("step 1/2"));  // the second one takes a while
    for (const int signal : signals) {
      program.send(signal);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // else two of a kind come as one
    }
    return program.wait();
  };
  const Said at_once = signalled({SIGINT, SIGINT});
  CHECK(at_once.code == 130);
  CHECK(at_once.out.find("--resume") == std::string::npos);
  CHECK(!std::filesystem::exists(run + "/state.safetensors"));
  const Said saved = signalled({SIGUSR1, SIGTERM, SIGTERM});  // as a scheduler sends them
  CHECK((saved.code == 128 + SIGUSR1 || saved.code == 128 + SIGTERM));
  CHECK(saved.out.find("tessera train --resume " + run) != std::string::npos);
  CHECK(std::filesystem::exists(run + "/state.safetensors"));
}

TEST_CASE("what cannot be trained is refused with the way on") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    CAPTURE(arguments);
    const Said said = tessera_program("train --out " + (folder / "run").string() + " " + arguments);
    CAPTURE(said.err);
    CHECK(said.code == 2);
    CHECK(said.complains_of(why));
    CHECK(!std::filesystem::exists(folder / "run"));
  };
  const std::string small = tiny + " ";
  refused("", "--dataset NAME");
  refused("--epoch 3", "--epochs");
  refused("--recipe dmeo", "did you mean 'demo'");
  refused("--dataset shape", "did you mean 'shapes'");
  refused(small + "--set model.preset=sl-vti", "did you mean 'sl-vit'");
  refused(small + "--set optimiser.lr=1", "optimizer");
  refused(small + "--set optimizer.momentum=0.9", "momentum");
  refused(small + "--set model.deph=3", "depth");
  refused(small + "--set batch=many", "batch");
  refused(small + "--set batch", "key=value");
  refused(small + "--lr -1", "optimizer.lr");
  refused(small + "--set batch=200",
          "data: shapes: 96 training images are less than one batch of 200; give --batch N");
  refused(small + "--set 'optimizer.groups=[{\"pattern\":\"nothing\"}]'", "nothing");
  refused(small + "--stop-after soon", "--stop-after");
  refused("--dataset cifar10", "--data DIR");
  refused("--dataset folder --data /no/such", "data: folder: there is no /no/such; give --data DIR");
  refused("--dataset cifar10 --data " + folder.path().string(), "data_batch_1.bin");
  refused("--resume " + (folder / "none").string() + " --batch 3", "--batch");
  const Said none = resume(folder, "none");
  CHECK(none.code == 2);
  CHECK(none.complains_of("no run to go on with"));
}

TEST_CASE("a loss that is not finite stops the run and names the op") {
  const TemporaryFolder folder;
  const Said said =
      train(folder, "run", "--lr 1e30 --set schedule.warmup_epochs=0 --set schedule.min_lr=1e30");
  CHECK(said.code == 2);
  CHECK(said.complains_of("epoch 1, step "));
  CHECK(said.complains_of("first, linear in patch_embed.proj gave ["));
  CHECK(said.complains_of("learning rate"));
  CHECK(std::count(said.err.begin(), said.err.end(), '\n') == 1);
  CHECK(said.out.find("the step is left out") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "run" / "last.safetensors"));
}
