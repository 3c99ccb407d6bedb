#include <doctest/doctest.h>

#include "tests/commands/program.h"

using namespace tessera;

namespace {

// What bash offers at the end of these words.
std::string offered(const std::string& words) {
  const TemporaryFolder folder;
  put(folder / "script", tessera_program("--completion bash").out + "COMP_WORDS=(" + words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_tessera\necho \"${COMPREPLY[@]}\"\n");
  const std::string out = folder / "out";
  REQUIRE(std::system(("bash " + (folder / "script").string() + " >" + out + " 2>/dev/null").c_str()) == 0);
  return bytes_of(out);
}

bool offers(const std::string& words, const std::string& name) {
  return (" " + offered(words)).find(" " + name) != std::string::npos;
}

}  // namespace

TEST_CASE("completion: bash offers commands, options, and the program's own names") {
  CHECK(offered("tessera expo") == "export\n");
  CHECK(offered("tessera bench inf") == "infer\n");
  CHECK(offers("tessera train --rec", "--recipe"));
  CHECK(offers("tessera train --recipe de", "demo"));
  CHECK(offers("tessera train --dataset cifar", "cifar10"));
  CHECK(offers("tessera train --model sl-", "sl-vit"));
  CHECK(offers("tessera train --set optimizer.", "optimizer.lr="));
  CHECK(!offers("tessera train --set optimizer.", "sl-vit"));
  CHECK(offers("tessera keys optimizer.", "optimizer.lr"));
}

TEST_CASE("completion: zsh and fish have theirs; another shell is refused") {
  CHECK(tessera_program("--completion zsh").out.starts_with("#compdef tessera\n"));
  CHECK(tessera_program("--completion fish").out.find("-l recipe") != std::string::npos);
  check_refused("--completion tcsh", "wanted bash, zsh or fish");
}

TEST_CASE("manual: one page a command, with its options") {
  const TemporaryFolder folder;
  const Said said = tessera_program("--manual " + (folder / "man").string());
  REQUIRE_MESSAGE(said.code == 0, said.err);
  const std::string page = bytes_of(folder / "man/tessera-train.1");
  CHECK(page.starts_with(".TH TESSERA-TRAIN 1 "));
  CHECK(page.find("\\fB\\-\\-recipe\\fR") != std::string::npos);
  CHECK(std::filesystem::exists(folder / "man/tessera-bench-infer.1"));
  CHECK(bytes_of(folder / "man/tessera.1").find("tessera\\-export") != std::string::npos);
}

TEST_CASE("--version says commit, compiler, libraries and kernels") {
  const std::string said = tessera_program("--version", "TESSERA_CPU=any").out;
  for (const char* part : {"tessera 0.", ", commit ", "compiler ", "OpenBLAS", "processor   any"})
    CHECK_MESSAGE(said.find(part) != std::string::npos, said);
}
