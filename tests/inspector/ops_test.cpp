// The page's ops compute every step of every model again, and explain its cells.

#include <filesystem>

#include "engine/io/safetensors.h"
#include "tests/inspector/node.h"

using namespace tessera;
namespace fs = std::filesystem;

TEST_CASE("page: every step of every fixture, computed again and explained in the page") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  const std::string page = folder / "page.html";
  int models = 0;
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE "/tests/fixtures")) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto metadata = read_safetensors(entry.path()).metadata;
    if (!metadata.contains("config") || metadata.at("config").find("\"part\"") != std::string::npos) continue;
    CAPTURE(entry.path().filename().string());
    const Said said =
        tessera_program("inspect " + entry.path().string() + " --dtype f64 --proofs 0 --out " + page);
    REQUIRE_MESSAGE(said.code == 0, said.err);
    const Said checked = run_script("check_ops.js", page);
    CAPTURE(checked.err);
    CHECK(checked.code == 0);
    CHECK(checked.out.find("checked ") == 0);
    ++models;
  }
  CHECK(models >= 30);
}
