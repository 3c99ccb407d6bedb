#include "models/check/fixture.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/io/safetensors.h"

using namespace tessera;

namespace {

const std::filesystem::path fixtures = TESSERA_FIXTURES;
const char* const known[] = {"vit",
                             "s-vit",
                             "l-vit",
                             "sl-vit",
                             "vit-modifiers",
                             "vit-cag",
                             "vit-fixed-decay",
                             "spatial-prior",
                             "spatial-prior-cls",
                             "decay-content",
                             "decay-content-columns",
                             "decay-content-no-distance",
                             "decay-content-rows",
                             "decay-distance",
                             "decay-fixed",
                             "decay-fixed-rows",
                             "rmt",
                             "rmt-train",
                             "sdt",
                             "sdt-distance",
                             "sdt-no-distance",
                             "rope",
                             "dit",
                             "dit-decay",
                             "dit-sigma",
                             "resnet",
                             "resnet-train",
                             "efficientnet",
                             "efficientnet-train",
                             "lvvit",
                             "lvvit-dense",
                             "sp-vit",
                             "sp-vit-dense",
                             "sp-vit-layer",
                             "sp-vit-shared",
                             "segment",
                             "segment-train",
                             "resize-pos-embed",
                             "segmentation-scores",
                             "token-targets"};

// A copy of a fixture with one tensor changed.
std::filesystem::path changed(const std::string& name, const std::string& tensor, double factor) {
  TensorFile file = read_safetensors(fixtures / (name + ".safetensors"));
  for (auto& [key, value] : file.tensors)
    if (key == tensor) value.data<float>()[0] *= static_cast<float>(factor);
  const auto path = std::filesystem::temp_directory_path() / ("tessera-" + name + "-changed.safetensors");
  write_safetensors(path, file.tensors, file.metadata);
  return path;
}

}  // namespace

TEST_CASE("every fixture is matched in value and gradient, in f32 and f64") {
  for (const char* name : known) {
    CAPTURE(name);
    const std::string path = fixtures / (std::string(name) + ".safetensors");
    const Parity single = check_fixture(path, DType::f32), exact = check_fixture(path, DType::f64);
    CAPTURE(single.tensor);
    CHECK(single.error <= 1e-4);
    CAPTURE(exact.tensor);
    CHECK(exact.error <= 1e-6);
    CHECK(exact.compared >= 1);
  }
}

TEST_CASE("a fixture whose numbers are off is noticed") {
  const auto gradient = changed("sl-vit", "grad.blocks.0.attn.scale", 1.01);
  CHECK(check_fixture(gradient, DType::f64).tensor == "grad.blocks.0.attn.scale");
  CHECK(check_fixture(gradient, DType::f64).error > 1e-4);
  CHECK(check_fixture(changed("vit", "param.head.bias", 2), DType::f64).error > 1e-4);
  const auto broken = changed("vit", "grad.blocks.0.attn.proj.bias", std::nan(""));  // others come after it
  CHECK(std::isinf(check_fixture(broken, DType::f64).error));
}

TEST_CASE("what is no fixture of a known kind is refused") {
  TensorFile file = read_safetensors(fixtures / "vit.safetensors");
  const auto path = std::filesystem::temp_directory_path() / "tessera-refused.safetensors";
  file.metadata["config"] = R"({"part": "wheel"})";
  write_safetensors(path, file.tensors, file.metadata);
  CHECK_THROWS_AS(check_fixture(path, DType::f32), Error);
  file.metadata.erase("config");
  write_safetensors(path, file.tensors, file.metadata);
  CHECK_THROWS_AS(check_fixture(path, DType::f32), Error);
  CHECK_THROWS_AS(check_fixture(fixtures / "none.safetensors", DType::f32), Error);
  CHECK_THROWS_AS(check_fixture(fixtures / "vit.safetensors", DType::bf16), Error);
}
