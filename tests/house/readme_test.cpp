#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(TESSERA_SOURCE "/") + path);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the README's program is the one that the package test compiles and runs") {
  const std::string program = read("tests/house/consumer/gradient.cpp");
  CHECK(read("README.md").find(program.substr(program.find("#include"))) != std::string::npos);
}

TEST_CASE("the inspector's README shows lines of the program that the package test compiles and runs") {
  const std::string readme = read("apps/inspector/README.md"),
                    program = read("tests/house/consumer/own_tape.cpp");
  std::istringstream lines(readme.substr(readme.find("```cpp\n") + 7));
  int shown = 0;
  for (std::string line; std::getline(lines, line) && line != "```"; ++shown)
    CHECK_MESSAGE(program.find(line) != std::string::npos, line);
  CHECK(shown > 4);
}
