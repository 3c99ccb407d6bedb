#include "models/check/fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "models/architectures.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

const std::filesystem::path fixtures = TESSERA_FIXTURES;

// All fixtures of the clone, sorted by name. Files in subfolders have other formats.
std::vector<std::filesystem::path> fixture_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// A copy of a fixture with the first number of one tensor multiplied by `factor`.
std::filesystem::path changed(const TemporaryFolder& folder, const std::string& name,
                              const std::string& tensor, double factor) {
  TensorFile file = read_safetensors(fixtures / (name + ".safetensors"));
  for (auto& [key, value] : file.tensors)
    if (key == tensor) value.data<float>()[0] *= static_cast<float>(factor);
  const auto path = folder / (name + "-changed.safetensors");
  write_safetensors(path, file.tensors, file.metadata);
  return path;
}

// The message with which a copy of vit.safetensors with another config is refused.
std::string refusal_of(const std::string& config) {
  const TemporaryFolder folder;
  TensorFile file = read_safetensors(fixtures / "vit.safetensors");
  file.metadata["config"] = config;
  const auto path = folder / "refused.safetensors";
  write_safetensors(path, file.tensors, file.metadata);
  return error_of([&] { check_fixture(path, DType::f32); });
}

}  // namespace

TEST_CASE("every fixture is matched in value and gradient, in f32 and f64") {
  const auto files = fixture_files();
  CHECK(files.size() >= 51);
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Parity parity = check_fixture(path, dtype);
      CAPTURE(parity.tensor);
      CHECK(parity.error <= parity_tolerance(dtype));
      CHECK(parity.compared >= 1);
    }
  }
}

TEST_CASE("every architecture has a fixture") {
  std::set<std::string> seen;
  for (const auto& path : fixture_files()) {
    const Json config = parse_json(read_safetensors(path).metadata.at("config"), path.string());
    if (config.contains("arch")) seen.insert(config.at("arch").get<std::string>());
  }
  for (const Architecture& row : architectures()) {
    CAPTURE(row.name);
    CHECK(seen.contains(row.name));
  }
}

TEST_CASE("a fixture whose numbers are off is noticed") {
  const TemporaryFolder folder;
  const auto gradient = changed(folder, "sl-vit", "grad.blocks.0.attn.scale", 1.01);
  CHECK(check_fixture(gradient, DType::f64).tensor == "grad.blocks.0.attn.scale");
  CHECK(check_fixture(gradient, DType::f64).error > 1e-4);
  CHECK(check_fixture(changed(folder, "vit", "param.head.bias", 2), DType::f64).error > 1e-4);
  // A NaN must not be forgotten when later tensors agree.
  const auto broken = changed(folder, "vit", "grad.blocks.0.attn.proj.bias", std::nan(""));
  CHECK(std::isinf(check_fixture(broken, DType::f64).error));
}

TEST_CASE("what is no fixture of a known kind is refused") {
  CHECK(refusal_of(R"({"arch": "vitt"})")
            .ends_with("refused.safetensors: model: unknown arch 'vitt'; did you mean 'vit'?"));
  CHECK(refusal_of(R"({"part": "wheel"})").find("'wheel'") != std::string::npos);
  CHECK(refusal_of("[]").find("\"arch\", the name of its architecture") != std::string::npos);
  const auto refusal = [](const std::string& name, DType dtype) {
    return error_of([&] { check_fixture(fixtures / name, dtype); });
  };
  CHECK(refusal("none.safetensors", DType::f32).find("none.safetensors") != std::string::npos);
  CHECK(refusal("timm/vit.safetensors", DType::f32).find("no \"config\" in its metadata") !=
        std::string::npos);
  CHECK(refusal("vit.safetensors", DType::bf16) == "parity: runs in f32 or f64, not bf16");
}
