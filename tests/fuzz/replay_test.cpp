// Replays the corpora through the fuzz targets in every build.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

#define DECLARE(name) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
TESSERA_FUZZ_TARGETS(DECLARE)
#undef DECLARE

namespace {

using Target = int (*)(const uint8_t*, size_t);

const std::map<std::string, Target> targets{
#define ENTRY(name) {#name, &fuzz_##name},
    TESSERA_FUZZ_TARGETS(ENTRY)
#undef ENTRY
};

const std::filesystem::path corpus = TESSERA_SOURCE "/tests/fuzz/corpus";

}  // namespace

TEST_CASE("fuzz: every target accepts or refuses every input of its corpus") {
  for (const auto& [key, target] : targets) {
    const std::string& name = key;  // clang 14's CAPTURE takes no structured binding
    int64_t inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(corpus / name)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      CAPTURE(entry.path().string());
      CHECK(target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()) == 0);
      ++inputs;
    }
    CAPTURE(name);
    CHECK(inputs >= 3);
  }
}

TEST_CASE("fuzz: every corpus has its target, every input is small") {
  for (const auto& entry : std::filesystem::directory_iterator(corpus))
    CHECK(targets.contains(entry.path().filename()));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus))
    if (entry.is_regular_file()) CHECK(entry.file_size() <= 16384);
}
