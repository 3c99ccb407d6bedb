#include "tests/house/documents.h"

#include <doctest/doctest.h>

#include "tests/io/temporary_folder.h"

using namespace tessera::house;
namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

namespace {

const fs::path tree = TESSERA_SOURCE;
constexpr int64_t page = 80, top_page = 200;

void write(const tessera::TemporaryFolder& folder, const std::string& name, const std::string& text) {
  fs::create_directories((folder / name).parent_path());
  tessera::put(folder / name, text);
}

void expect_none(const Lines& breaches) {
  for (const std::string& breach : breaches) FAIL_CHECK(breach);
}

}  // namespace

TEST_CASE("documents: every room has a README of at most a page") {
  expect_none(readme_breaches(tree, page, top_page));
}

TEST_CASE("documents: every link leads somewhere") { expect_none(broken_links(tree)); }

TEST_CASE("documents: nothing refers to a file that a clone does not have") {
  expect_none(references_to_absent_files(tree));
}

TEST_CASE("engine: TESSERA_CUDA is asked for in one place") {
  const Lines found = cuda_conditions(tree);
  std::string all;
  for (const std::string& each : found) all += " " + each;
  CHECK_MESSAGE(found.size() == 1, all);
}

TEST_CASE("documents: missing and long READMEs are found") {
  const tessera::TemporaryFolder folder;
  for (const char* name : {"README.md", "engine/README.md", "models/README.md", "data/README.md",
                           "apps/README.md", "tests/README.md", "tests/ops/README.md"})
    write(folder, name, "one\ntwo\n");
  CHECK(readme_breaches(folder.path(), 2, 2).empty());
  write(folder, "engine/core/shape.h", "");
  write(folder, "apps/README.md", "one\ntwo\nthree\n");
  write(folder, "README.md", "one\ntwo\nthree\nfour\n");
  CHECK(readme_breaches(folder.path(), 2, 3) == Lines{"README.md has 4 lines, 3 are allowed",
                                                      "engine/core/README.md is missing",
                                                      "apps/README.md has 3 lines, 2 are allowed"});
}

TEST_CASE("documents: a link that leads nowhere is found") {
  const tessera::TemporaryFolder folder;
  write(folder, "models/vit.h", "");
  write(folder, "README.md",
        "[a](models/vit.h) [b](models/README.md#top)\n[web](https://example.org/x) [here](#top)\n"
        "```\n[code](none.md)\n```\n[c](none.md)\n");
  CHECK(broken_links(folder.path()) == Lines{"README.md:1: no models/README.md", "README.md:6: no none.md"});
}

TEST_CASE("documents: a reference to an absent file is found") {
  const tessera::TemporaryFolder folder;
  const std::string kept =
      std::string("// a preference/taste, wallpapers/x, and TESSERA_SHARED, often ../") + "shared\n";
  write(folder, "models/vit.h", kept + "// as SIZES" + ".md says\n\n// see papers" + "/vit.txt\n");
  write(folder, "data/README.md", std::string("by reference") + "/vit.py\n");
  const Lines found = references_to_absent_files(folder.path());
  REQUIRE(found.size() == 3);
  CHECK(found[0].starts_with("data/README.md:1: "));
  CHECK(found[1].starts_with("models/vit.h:2: "));
  CHECK(found[2].starts_with("models/vit.h:4: "));
}

TEST_CASE("engine: a second condition on TESSERA_CUDA is found") {
  const tessera::TemporaryFolder folder;
  write(folder, "engine/core/a.cpp", "#ifdef TESSERA_CUDA\n#endif\n");
  write(folder, "engine/core/b.h", "#ifdef TESSERA_CUDA_EMULATED\n#endif\n// TESSERA_CUDA\n");
  write(folder, "engine/ops/c.cpp", "\n#if !defined(TESSERA_CUDA)\n#endif\n");
  CHECK(cuda_conditions(folder.path()) == Lines{"engine/core/a.cpp:1", "engine/ops/c.cpp:2"});
}
