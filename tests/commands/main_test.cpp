#include <doctest/doctest.h>

#include <sstream>

#include "apps/commands/commands.h"
#include "tests/commands/program.h"
#include "tests/sanitized.h"

using namespace tessera;

namespace {

using Names = std::vector<std::string>;

#define TESSERA_NAME(name) #name,
const Names commands{TESSERA_COMMANDS(TESSERA_NAME)};
const Names bench_commands{TESSERA_BENCH_COMMANDS(TESSERA_NAME)};
const Names data_commands{TESSERA_DATA_COMMANDS(TESSERA_NAME)};
#undef TESSERA_NAME

// The first words of the lines below "Subcommands:".
Names subcommands_in(const std::string& help) {
  const size_t at = help.find("Subcommands:\n");
  REQUIRE(at != std::string::npos);
  std::istringstream lines(help.substr(at));
  std::string line, name;
  std::getline(lines, line);
  Names names;
  while (std::getline(lines, line) && line.starts_with("  "))
    if (line[2] != ' ' && std::istringstream(line) >> name) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("the help lists exactly the subcommands of the list, which is compared with the files elsewhere") {
  CHECK(subcommands_in(tessera_program("--help").out) == commands);
  CHECK(subcommands_in(tessera_program("bench --help").out) == bench_commands);
  CHECK(subcommands_in(tessera_program("data --help").out) == data_commands);
}

TEST_CASE("tessera --version and --help") {
  CHECK(tessera_program("--version").out.starts_with("tessera 0."));
  const Said help = tessera_program("--help");
  CHECK(help.code == 0);
  for (const std::string& name : commands) {
    CAPTURE(name);
    const Said inner = tessera_program(name + " --help");
    CHECK(inner.code == 0);
    CHECK(inner.out.find(name) != std::string::npos);
    CHECK(inner.err.empty());
  }
}

// Sanitizers need terabytes of addresses.
TEST_CASE("tessera --version ends where there is little address space: no BLAS starts its threads" *
          doctest::skip(sanitized)) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", files = folder / "files";
  const std::string command =
      "ulimit -v 200000; LD_DEBUG=files timeout 20 " + program_path() + " --version >" + out + " 2>" + files;
  CHECK(std::system(command.c_str()) == 0);
  CHECK(bytes_of(out).starts_with("tessera "));
  CHECK(bytes_of(files).find("libtbb") != std::string::npos);
  CHECK(bytes_of(files).find("openblas") == std::string::npos);
}

TEST_CASE("the help shows a flag that clears as it is typed") {
  for (const auto& [command, flag] : {std::pair("train", "--no-graph"),
                                      {"bench table", "--no-graph"},
                                      {"bench table", "--no-speed"},
                                      {"bench infer", "--no-graph"}}) {
    CAPTURE(command);
    const std::string help = tessera_program(std::string(command) + " --help").out;
    CHECK(help.find(std::string("  ") + flag + " ") != std::string::npos);
    CHECK(help.find('{') == std::string::npos);
  }
}

TEST_CASE("every subcommand's help ends in examples") {
  for (const char* name :
       {"train", "eval", "predict", "sample", "models", "summary", "parity", "gradcheck", "bench",
        "bench train", "bench infer", "bench loader", "bench run", "bench gemm", "data info"}) {
    CAPTURE(name);
    CHECK(tessera_program(std::string(name) + " --help").out.find("\n  tessera ") != std::string::npos);
  }
}

TEST_CASE("unknown words are errors that name the nearest") {
  struct {
    const char *arguments, *complaint;
  } cases[] = {
      {"trian", "unknown subcommand 'trian'; did you mean 'train'?"},
      {"models --jsn", "unknown option --jsn; did you mean '--json'?"},
      {"models --image-sise=32", "unknown option --image-sise; did you mean '--image-size'?"},
      {"bench trian", "unknown subcommand 'trian'; did you mean 'train'?"},
      {"bench train --bacth 3", "did you mean '--batch'?"},
      {"bench", "bench: "},
      {"models extra", "unexpected argument 'extra'"},
      {"models --image-size abc", "--image-size"},
      {"models --image-size -4", "--image-size"},
      {"bench infer --device cuda9", "cuda9"},
      {"train --recipe demo --precision bf61",
       "--precision 'bf61' is not one of f32, tf32, bf16; did you mean 'bf16'?"},
      {"parity x.safetensors --dtype f23", "--dtype 'f23' is not one of f32, f64; did you mean 'f32'?"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.arguments);
    const Said said = tessera_program(each.arguments);
    CHECK(said.code == 2);
    CHECK(said.out.empty());
    CAPTURE(said.err);
    CHECK(said.complains_of(each.complaint));
  }
}

TEST_CASE("without a subcommand the program says what there is") {
  const Said said = tessera_program("");
  CHECK(said.code == 2);
  CHECK(said.err.find("summary") != std::string::npos);
}

TEST_CASE("output that is lost is an error") {
  if (!std::filesystem::exists("/dev/full")) return;
  for (const char* arguments : {"models --json", "--help", "data info shapes"}) {
    CAPTURE(arguments);
    const int status = std::system((program_path() + " " + arguments + " >/dev/full 2>/dev/null").c_str());
    CHECK(WEXITSTATUS(status) == 2);
  }
}
