#include "tests/house/layering.h"

#include <doctest/doctest.h>

#include "tests/io/temporary_folder.h"

using namespace tessera::house;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> breaches_of(const std::string& path, const std::string& text) {
  const Source source{path, text};
  return layer_breaches({&source, 1});
}

void expect_breach(const std::string& path, const std::string& text, const std::string& reason) {
  CAPTURE(path);
  CAPTURE(text);
  const auto found = breaches_of(path, text);
  REQUIRE(found.size() == 1);
  CHECK_MESSAGE(found[0].find(reason) != std::string::npos, found[0]);
}

void expect_clean(const std::string& path, const std::string& text) {
  CAPTURE(path);
  CAPTURE(text);
  CHECK(breaches_of(path, text).empty());
}

void write(const tessera::TemporaryFolder& folder, const std::string& name, size_t bytes) {
  fs::create_directories((folder / name).parent_path());
  tessera::put(folder / name, std::string(bytes, 'x'));
}

}  // namespace

TEST_CASE("layers: the tree keeps the rule") {
  const auto sources = read_sources(TESSERA_SOURCE);
  REQUIRE(sources.size() > 10);
  for (const std::string& breach : layer_breaches(sources)) FAIL_CHECK(breach);
}

TEST_CASE("layers: nothing looks up or aside") {
  expect_breach("engine/core/tensor.cpp", "#include \"engine/autograd/tape.h\"\n", "engine/core may not see");
  expect_breach("engine/ops/norm.cpp", "#include \"engine/check/op_case.h\"\n", "engine/ops may not see");
  expect_breach("engine/io/json.h", "#include \"engine/nn/scope.h\"\n", "engine/io may not see");
  expect_breach("engine/nn/linear.h", "#include \"models/vit.h\"\n", "engine/nn may not see models");
  expect_breach("models/vit.cpp", "#include \"data/dataset.h\"\n", "models may not see data");
  expect_breach("data/loader.cpp", "#include \"engine/ops/shape.h\"\n", "data may not see engine/ops");
  expect_breach("data/formats/mat.cpp", "#include \"data/sets/svhn.h\"\n",
                "data/formats may not see data/sets");
  expect_breach("data/sets/svhn.cpp", "#include \"data/registry.h\"\n", "data/sets may not see data");
  expect_breach("data/dataset.cpp", "#include \"data/loader.h\"\n", "data/sets may not see data");
  expect_breach("apps/commands/train.cpp", "  #  include <tests/house/layering.h>\n",
                "apps/commands may not see tests");
  expect_breach("engine/extra/new.cpp", "", "in no folder of the design");
}

TEST_CASE("layers: what a layer may see passes") {
  expect_clean("engine/ops/norm.cpp",
               "#include \"engine/autograd/op.h\"\n#include \"engine/ops/norm.h\"\n#include <tbb/task.h>\n");
  expect_clean("models/parts/mlp.cpp",
               "#include \"engine/io/safetensors.h\"\n#include \"models/config.h\"\n");
  expect_clean("data/augment/flip.cpp", "#include \"engine/core/random.h\"\n#include <zlib.h>\n");
  expect_clean("apps/commands/train.cpp",
               "#include <fmt/core.h>\n#include \"data/loader.h\"\n#include \"models/vit.h\"\n");
}

TEST_CASE("layers: kernels, CUDA and libraries have their place") {
  expect_breach("engine/ops/norm_kernels.h", "#include \"engine/core/tensor.h\"\n", "know no Tensor");
  expect_breach("engine/ops/norm_cpu.cpp", "\nvoid f(const Tensor& x);\n", "norm_cpu.cpp:2: names Tensor");
  expect_breach("engine/ops/norm_cpu.cpp", "#include \"engine/cuda/launch.h\"\n", "CUDA is for");
  expect_breach("engine/ops/norm.cpp", "#include <cuda_runtime.h>\n", "CUDA is for");
  expect_breach("engine/io/json.cpp", "#include <fmt/format.h>\n", "alone");
  expect_breach("apps/commands/train.cpp", "#include <CLI/CLI.hpp>\n", "CLI11 takes seconds");
  expect_clean("apps/options/command.cpp", "#include <CLI/CLI.hpp>\n");
  expect_clean("apps/options/program.cpp", "#include <CLI/CLI.hpp>\n");
  expect_breach("engine/ops/norm.cpp", "#include \"norm.h\"\n", "not a path from the repo root");
  expect_clean("engine/ops/norm_cpu.cpp", "// no Tensor here\n#include \"engine/core/parallel.h\"\n");
  expect_clean("engine/core/memory_cuda.cu",
               "#include <cuda_runtime.h>\n#include \"engine/cuda/memory.h\"\n");
  expect_breach("engine/core/tensor.cpp", "\n#ifdef TESSERA_CUDA\n", "tensor.cpp:2: asks the preprocessor");
  expect_breach("data/loader.cpp", "#if defined(X) && defined(TESSERA_CUDA)\n", "asks the preprocessor");
  expect_clean("engine/core/device.h", "#ifdef TESSERA_CUDA\n");
  expect_clean("engine/cuda/launch.h", "#if defined(TESSERA_CUDA_EMULATED)\n");
  expect_clean("data/feed_cuda.cu", "#include \"data/feed.h\"\n#include \"engine/cuda/launch.h\"\n");
  expect_breach("data/feed_cuda.cu", "#include \"engine/cpu/walk.h\"\n", "data may not see engine/cpu");
  expect_breach("data/loader.cpp", "#include \"engine/cuda/stream.h\"\n", "CUDA is for");
}

TEST_CASE("tree: the top level is the design's, and no file is over 1 MB") {
  for (const std::string& entry : stray_entries(TESSERA_SOURCE)) FAIL_CHECK(entry << " at the top level");
  for (const std::string& file : large_files(TESSERA_SOURCE, 1 << 20)) FAIL_CHECK(file << " is over 1 MB");
}

TEST_CASE("tree: a stray entry and a large file are found") {
  const tessera::TemporaryFolder folder;
  write(folder, "README.md", 1);
  write(folder, "build-asan/object.o", 200);
  write(folder, "tools/script.py", 1);
  write(folder, "data/big.bin", 101);
  write(folder, "data/fits.bin", 100);
  CHECK(stray_entries(folder.path()) == std::vector<std::string>{"tools"});
  CHECK(large_files(folder.path(), 100) == std::vector<std::string>{"data/big.bin"});
}
