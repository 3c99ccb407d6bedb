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

// The message with which a copy of a fixture with this change is refused, without the file's name before it.
template <class F> std::string refusal_of(const std::string& name, F&& change) {
  const TemporaryFolder folder;
  TensorFile file = read_safetensors(fixtures / (name + ".safetensors"));
  change(file);
  const std::string path = folder / "refused.safetensors";
  write_safetensors(path, file.tensors, file.metadata);
  const std::string said = error_of([&] { check_fixture(path, DType::f32); });
  if (said.empty()) return said;
  CHECK(said.starts_with(path + ": "));
  return said.substr(path.size() + 2);
}

std::string refusal_of(const std::string& config) {
  return refusal_of("vit", [&](TensorFile& file) { file.metadata["config"] = config; });
}

// The same message of a copy without one tensor.
std::string refusal_without(const std::string& name, const std::string& tensor) {
  return refusal_of(name, [&](TensorFile& file) {
    std::erase_if(file.tensors, [&](const auto& each) { return each.first == tensor; });
  });
}

// The same message of a copy whose config has these changes.
std::string refusal_with(const std::string& name, const Json& changes) {
  return refusal_of(name, [&](TensorFile& file) {
    Json config = parse_json(file.metadata.at("config"), name);
    config.merge_patch(changes);
    file.metadata["config"] = config.dump();
  });
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
  CHECK(refusal_of(R"({"arch": "vitt"})") == "model: unknown arch 'vitt'; did you mean 'vit'?");
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

TEST_CASE("a fixture that lacks a tensor, or holds one too many, is refused by its name") {
  const auto lacks = [](const char* tensor) {
    return "no tensor '" + std::string(tensor) + "', which a fixture of this kind holds";
  };
  CHECK(refusal_without("vit", "input") == lacks("input"));
  CHECK(refusal_without("vit", "loss") == lacks("loss"));
  CHECK(refusal_without("vit", "grad.head.bias") == lacks("grad.head.bias"));
  CHECK(refusal_without("rope", "grad_output") == lacks("grad_output"));
  CHECK(refusal_without("spatial-prior", "grad_output") == lacks("grad_output"));
  CHECK(refusal_without("segmentation-scores", "iou") == lacks("iou"));
  CHECK(refusal_without("vit", "param.head.bias").find("head.bias") != std::string::npos);
  for (const char* name : {"rope", "resize-pos-embed", "decay-content", "decay-content-rows"}) {
    CAPTURE(name);
    CHECK(refusal_without(name, "input") != "");
  }
  const auto more = [](TensorFile& file) { file.tensors.emplace_back("more", Tensor::zeros({1})); };
  for (const char* name : {"vit", "rope"})
    CHECK(refusal_of(name, more) ==
          "holds 'more', which the engine does not compute for a fixture of this kind");
  // A buffer after the step that the file leaves out is not compared.
  CHECK(refusal_without("resnet-train", "after.bn1.running_mean") == "");
}

TEST_CASE("a fixture whose shapes, mode or settings contradict one another is refused") {
  CHECK(refusal_of("vit", [](TensorFile& file) { file.metadata["mode"] = "test"; }) == "unknown mode 'test'");
  CHECK(refusal_of("vit", [](TensorFile& file) {
          for (auto& [name, tensor] : file.tensors)
            if (name == "loss") tensor = tensor.reshape({1});
        }) == "loss is [1] in the file, the engine gives []");
  CHECK(refusal_with("rope", {{"grid", {3, 5, 1}}}) == "part: grid has 3 sizes, [rows, columns] is wanted");
  CHECK(refusal_with("rope", {{"grid", {3, 0}}}) == "part: grid[1] is 0, wanted an integer of at least 1");
  CHECK(refusal_with("rope", {{"angle", 1}}).starts_with("part: angle is not known here"));
  CHECK(refusal_with("decay-fixed", {{"form", "diagonals"}}) ==
        "part: form is 'diagonals'; there are forward, rows, columns");
  CHECK(refusal_of("token-targets", [](TensorFile& file) {
          for (auto& [name, tensor] : file.tensors)
            if (name == "crop") tensor = Tensor::zeros({3});
        }) == "part: crop has 3 numbers, top, left, bottom, right are wanted");
}

TEST_CASE("a class that no pixel has counts as -1 in a fixture, as in its reference") {
  CHECK(refusal_of("segmentation-scores", [](TensorFile& file) {
          for (auto& [name, tensor] : file.tensors)
            if (name == "predicted" || name == "target") tensor = Tensor::zeros(tensor.shape(), DType::i64);
          for (auto& [name, tensor] : file.tensors)
            if (name == "iou") tensor = Tensor::from({1, -1, -1, -1, -1}, {5});
        }) == "");
}
