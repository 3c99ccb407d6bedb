#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
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

TEST_CASE("the inspector's README shows the program that the package test compiles and runs") {
  const std::string program = read("tests/house/consumer/own_tape.cpp");
  CHECK(read("apps/inspector/README.md").find(program.substr(program.find("#include"))) != std::string::npos);
}
