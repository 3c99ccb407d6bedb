#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/house/layering.h"

using namespace tessera::house;

namespace {

using Texts = std::map<std::string, std::string>;

Texts headers_of_the_tree() {
  Texts texts;
  for (const Source& source : read_sources(TESSERA_SOURCE))
    if (source.path.ends_with(".h")) texts[source.path] = source.text;
  return texts;
}

std::vector<std::string> quoted_includes(const std::string& text) {
  static const std::regex pattern("#\\s*include\\s*\"([^\"]+)\"");
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

// The lists of public headers and whatever they include, each with the header that includes it; as
// engine/publicHeaders.cmake finds what it installs.
Texts public_headers(const Texts& texts) {
  Texts found;
  std::deque<std::pair<std::string, std::string>> pending;
  for (const char* list : {"engine/engine.h", "engine/check/check.h", "models/models.h", "data/data.h",
                           "apps/training/training.h", "apps/inspector/inspector.h"})
    pending.emplace_back(list, "");
  while (!pending.empty()) {
    const auto [path, from] = pending.front();
    pending.pop_front();
    if (!found.emplace(path, from).second) continue;
    for (const std::string& include : quoted_includes(texts.at(path))) pending.emplace_back(include, path);
  }
  return found;
}

// What an embedder has no use for: kernels, a device's side, and what only sources of one room share.
bool is_private(const std::string& path) {
  static const std::regex pattern(
      "(.*_kernels\\.h|.*_cuda\\.h|engine/(cpu|cuda)/.*|data/(feed|device_batches)\\.h|apps/(?!training/"
      "|inspector/).*)");
  return std::regex_match(path, pattern);
}

}  // namespace

TEST_CASE("public headers: none includes a private one") {
  const Texts found = public_headers(headers_of_the_tree());
  CHECK(found.size() > 50);
  for (const auto& [path, from] : found)
    CHECK_MESSAGE(!is_private(path), path << " would be installed, as " << from << " includes it");
}

TEST_CASE("public headers: private ones are told from public ones") {
  for (const char* path : {"engine/ops/norm_kernels.h", "data/feed_cuda.h", "engine/cpu/simd.h",
                           "engine/cuda/launch.h", "apps/options/command.h", "data/feed.h"})
    CHECK_MESSAGE(is_private(path), path);
  for (const char* path :
       {"engine/ops/norm.h", "apps/training/step.h", "apps/inspector/tape_page.h", "data/loader.h"})
    CHECK_MESSAGE(!is_private(path), path);
}

TEST_CASE("public headers: they need no library that the package does not ask for") {
  static const std::regex foreign(
      "#\\s*include\\s*<(CLI|fmt|stb|doctest|benchmark|curl|archive|nettle|jpeg)[/.][^>]*>");
  const Texts texts = headers_of_the_tree();
  for (const auto& [path, from] : public_headers(texts)) {
    std::smatch match;
    CHECK_MESSAGE(!std::regex_search(texts.at(path), match, foreign), path << " has " << match.str());
  }
}
