// What a shell, a disk or a file may do to the program: it ends with one line that says why, or goes on as if
// nothing had happened, and never with something else.

#include <doctest/doctest.h>

#include <limits>
#include <sstream>

#include "engine/io/safetensors.h"
#include "tests/commands/program.h"
#include "tests/sanitized.h"

namespace fs = std::filesystem;
using namespace tessera;

namespace {

const std::string tiny =
    " --dataset shapes --image-size 16 --model vit --epochs 1 --batch 16 --seed 5 --set data.train_images=48"
    " --set data.validation_images=20 --set model.dim=8 --set model.depth=1"
    " --set 'model.attention={\"heads\":2,\"head_dim\":4}' ";

// How a shell command with the program in place of '@' ends: the exit status, -1 for a signal.
int ends(std::string command) {
  command.replace(command.find('@'), 1, program_path());
  const int status = std::system(("( " + command + " )").c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) < 128 ? WEXITSTATUS(status) : -1;
}

int lines_of(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

void check_events(const fs::path& run) {
  std::istringstream lines(bytes_of(run / "events.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK(nlohmann::json::accept(line));
  CHECK(count == 3);  // start, an epoch, finished
}

// The last weights of a run with one number of head.bias replaced.
std::string with_bias(const fs::path& run, float value) {
  TensorFile file = read_safetensors(run / "last.safetensors");
  for (auto& [name, tensor] : file.tensors)
    if (name == "head.bias") tensor.data<float>()[3] = value;
  const std::string path = run / "changed.safetensors";
  write_safetensors(path, file.tensors, file.metadata);
  return path;
}

}  // namespace

TEST_CASE("standard streams that are closed: no file of a run gets their number") {
  const TemporaryFolder folder;
  int number = 0;
  for (const char* closed : {">&-", "2>&-", "<&-", "<&- >&-", "<&- >&- 2>&-"}) {
    CAPTURE(closed);
    const fs::path run = folder / std::to_string(++number);
    CHECK(ends("@ train --out " + run.string() + tiny + ">" + (folder / "out").string() + " " + closed) == 0);
    check_events(run);
    CHECK(fs::exists(run / "report.html"));
  }
}

TEST_CASE("where stderr cannot be written an error is still exit code 2") {
  if (!fs::exists("/dev/full")) return;
  for (const char* stream : {"2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&-"}) {
    CAPTURE(stream);
    CHECK(ends(std::string("@ nonsense ") + stream) == 2);
    CHECK(ends(std::string("@ ") + stream) == 2);
    CHECK(ends(std::string("@ eval /none ") + stream) == 2);
  }
}

TEST_CASE("an error is told once, also where stdout cannot be written") {
  if (!fs::exists("/dev/full")) return;
  const TemporaryFolder folder;
  const std::string err = folder / "err";
  CHECK(ends("@ eval /none >/dev/full 2>" + err) == 2);
  CHECK(lines_of(bytes_of(err)) == 1);
}

// Sanitizers need terabytes of addresses.
TEST_CASE("pictures that no memory can hold are refused with what takes less" * doctest::skip(sanitized)) {
  const TemporaryFolder folder;
  const Said said = tessera_program(
      "train --out " + (folder / "run").string() + tiny + "--set data.train_images=1000000000",
      "prlimit --as=4000000000");
  CHECK(said.code == 2);
  CHECK(
      said.complains_of("data: shapes: no memory for its images; fewer of them (--set data.train_images=N"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("numbers that no variable holds are refused, not clamped") {
  for (const char* option : {"--seed", "--epochs", "--batch", "--image-size"})
    for (const char* number : {"99999999999999999999", "-99999999999999999999"}) {
      CAPTURE(option);
      CAPTURE(number);
      check_refused(std::string("train --recipe demo --print-config ") + option + " " + number,
                    "is out of range");
    }
  for (const char* number : {"inf", "nan", "-inf", "1e999"}) {
    CAPTURE(number);
    const Said said = tessera_program(std::string("train --recipe demo --print-config --lr ") + number);
    CHECK(said.code == 2);
    CHECK(said.out.empty());
  }
  const Said long_one = tessera_program("train --recipe demo --print-config --seed " + std::string(300, '9'));
  CHECK(long_one.code == 2);
  CHECK(long_one.err.size() < 200);
}

TEST_CASE("control characters of names and keys do not reach the terminal") {
  const TemporaryFolder folder;
  const std::string evil = "a\033[31mb\ntessera: forged";
  put(folder / "model.json", "{\"arch\": \"vit\", \"a\\u001b[31mb\\ntessera: forged\": 1}");
  const Said key = tessera_program("summary " + (folder / "model.json").string());
  CHECK(key.code == 2);
  CHECK(key.err.find('\033') == std::string::npos);
  CHECK(key.err.find("\ntessera:") == std::string::npos);
  const Said file = tessera_program("eval '" + evil + "'");
  CHECK(file.code == 2);
  CHECK(file.err.find('\033') == std::string::npos);
  CHECK(file.err.find("a\\x1b[31mb") != std::string::npos);
}

TEST_CASE("weights that are not finite give an error with the tensor's name, not a table") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  REQUIRE(tessera_program("train --out " + run.string() + tiny).code == 0);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::string bad = with_bias(run, value);
    const std::string picture = run / "picture.ppm";
    put(picture, "P6 2 2 255\n" + std::string(12, 'x'));
    for (const std::string& arguments :
         {"eval " + bad, "predict " + bad + " " + picture,
          "train --init " + bad + tiny + "--out " + (folder / "other").string()})
      check_refused(arguments, "'head.bias', [10]: 1 of its 10 numbers");
    CHECK(!fs::exists(folder / "other"));
  }
}

TEST_CASE("outputs that overflow are an error of eval, not a score") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  REQUIRE(tessera_program("train --out " + run.string() + tiny).code == 0);
  TensorFile file = read_safetensors(run / "last.safetensors");
  for (auto& [name, tensor] : file.tensors)
    if (name == "head.weight")
      std::fill_n(tensor.data<float>(), tensor.elements(), std::numeric_limits<float>::max());
  const std::string path = run / "large.safetensors";
  write_safetensors(path, file.tensors, file.metadata);
  check_refused("eval " + path, "outputs of the model are not finite");
}

TEST_CASE("--resume changes how long a run goes on by --set, and refuses an edited config") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(tessera_program("train --out " + run + tiny).code == 0);
  const Said longer = tessera_program("train --resume " + run + " --set epochs=2 --set optimizer.lr=0.0001");
  CAPTURE(longer.err);
  CHECK(longer.code == 0);
  CHECK(longer.err.empty());
  CHECK(longer.out.find("epoch 2/2") != std::string::npos);
  CHECK(nlohmann::json::parse(bytes_of(folder / "run/config.json"))["epochs"] == 2);
  check_refused("train --resume " + run + " --set seed=6", "--set seed would make it another run");
  auto config = nlohmann::ordered_json::parse(bytes_of(folder / "run/config.json"));
  config["seed"] = 6;
  put(folder / "run/config.json", config.dump());
  check_refused("train --resume " + run, "seed is 6, the state was saved with 5");
}

TEST_CASE("a name or a number that is too long is told in one short line, without words of the library") {
  const std::string name(5000, 'a'), number(300, '1');
  for (const std::string& arguments :
       {"train --recipe " + name, "report " + name, "predict " + name + " x", "eval " + name,
        "train --out /tmp/" + name + tiny, "train --recipe demo --stop-after " + number,
        "train --recipe demo --set batch=" + number}) {
    const Said said = tessera_program(arguments);
    CAPTURE(said.err);
    CHECK(said.code == 2);
    CHECK(lines_of(said.err) == 1);
    CHECK(said.err.size() < 400);
    CHECK(said.err.find("filesystem error") == std::string::npos);
    CHECK(said.err.find("std::") == std::string::npos);
  }
}

TEST_CASE("an address that is none is refused, the empty one too") {
  const TemporaryFolder folder;
  for (const char* url : {"''", "ftp://x/y", "http://", "https:///x"})
    check_refused(std::string("data fetch mnist ") + (folder / "data").string() + " --url " + url, "--url: ");
  CHECK(!fs::exists(folder / "data"));
}

TEST_CASE("a run that no machine holds is refused at once, with what it would need") {
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  if (!thread_sanitized)  // which leaves fewer addresses than these weights take
    check_refused("train --out " + run + tiny + "--set model.dim=65536 --set model.depth=64",
                  "of memory, here are ");
  check_refused("train --out " + run + tiny + "--set model.depth=2147483648", "wanted at most 4096");
  for (const char* key : {"epochs", "batch", "steps", "passes", "repetitions", "data.train_images"})
    check_refused("train --out " + run + tiny + "--set " + key + "=9223372036854775807",
                  "9223372036854775807, wanted");
  CHECK(!fs::exists(run));
}
