#include <doctest/doctest.h>

#include <algorithm>

#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

// A copy of a fixture with one number of one tensor changed.
void corrupt(const std::string& name, const std::string& tensor, const std::filesystem::path& to) {
  const TensorFile file = read_safetensors(fixture(name));
  file.at(tensor).data<float>()[0] += 1;
  write_safetensors(to, file.tensors, file.metadata);
}

}  // namespace

TEST_CASE("tessera parity: ViT, its modifiers and their parts, in both types") {
  const std::vector<std::string> names{"vit",
                                       "s-vit",
                                       "l-vit",
                                       "sl-vit",
                                       "vit-modifiers",
                                       "vit-cag",
                                       "vit-fixed-decay",
                                       "spatial-prior",
                                       "spatial-prior-cls",
                                       "decay-fixed",
                                       "decay-fixed-rows",
                                       "decay-distance",
                                       "decay-content",
                                       "decay-content-rows",
                                       "decay-content-columns",
                                       "decay-content-no-distance"};
  std::string files;
  for (const std::string& name : names) files += " " + fixture(name);
  for (const char* dtype : {"f32", "f64"}) {
    const Said said = tessera_program("parity" + files + " --json --dtype " + dtype);
    CAPTURE(said.err);
    CHECK(said.code == 0);
    CHECK(said.json().size() == names.size());
    for (const auto& row : said.json()) {
      CAPTURE(row.dump());
      CHECK(row.at("verdict") == "ok");
      CHECK(row.at("compared") > 0);
      CHECK(row.at("error") <= (std::string(dtype) == "f32" ? 1e-4 : 1e-6));
    }
  }
}

TEST_CASE("tessera parity: exit codes") {
  const TemporaryFolder folder;
  const std::string wrong = folder / "wrong.safetensors", cut = folder / "cut.safetensors";
  const std::string unknown = folder / "unknown.safetensors";
  corrupt("sl-vit", "grad.blocks.1.attn.scale", wrong);
  put(cut, bytes_of(fixture("sl-vit")).substr(0, 5000));
  TensorFile file = read_safetensors(fixture("decay-fixed"));
  file.metadata["config"] = R"({"arch": "vti"})";
  write_safetensors(unknown, file.tensors, file.metadata);

  const Said past = tessera_program("parity " + wrong + " " + fixture("vit"));
  CHECK(past.code == 1);
  CHECK(past.out.find("grad.blocks.1.attn.scale") != std::string::npos);
  CHECK(past.out.find("past the tolerance") != std::string::npos);
  CHECK(tessera_program("parity " + fixture("vit") + " --tolerance 1e-12").code == 1);

  const Said unread = tessera_program("parity " + cut + " " + fixture("vit"));
  CHECK(unread.code == 2);
  CHECK(unread.complains_of("cut.safetensors"));
  CHECK(unread.out.find("ok") != std::string::npos);  // the other file is compared all the same
  CHECK(tessera_program("parity " + wrong + " " + cut).code == 2);
  CHECK(tessera_program("parity " + unknown).complains_of("did you mean 'vit'?"));
  CHECK(tessera_program("parity none.safetensors").code == 2);
  CHECK(tessera_program("parity").code == 2);
  CHECK(tessera_program("parity " + fixture("vit") + " --tolerance 0").code == 2);
}

TEST_CASE("tessera parity: all of the shared fixtures that this version knows") {
  const char* shared = std::getenv("TESSERA_SHARED");
  if (shared == nullptr) {
    MESSAGE("skipped: TESSERA_SHARED names no folder with fixtures/");
    return;
  }
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "fixtures")) {
    if (entry.path().extension() != ".safetensors") continue;
    const Said said = tessera_program("parity " + entry.path().string());
    CAPTURE(said.out);
    CAPTURE(said.err);
    if (said.code == 2) {  // a model or part of a later version
      CHECK((said.complains_of("unknown arch") || said.complains_of("part is '")));
      continue;
    }
    CHECK(said.code == 0);
    ++compared;
  }
  CHECK(compared >= 16);
}
