#include "engine/io/tensor_stream.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "engine/core/parallel.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

TEST_CASE("a stream gives each row as the whole file has it, in every type") {
  const TemporaryFolder folder;
  const auto path = folder / "x.safetensors";
  const std::vector<double> numbers{1, -2.5, 3, 0.125, 5, 6, -7, 8, 9, 10, 11, 12};
  const std::vector<int64_t> labels{3, 1, 2};
  NamedTensors tensors{{"labels", Tensor::from(labels, {3})}};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    tensors.emplace_back(std::string(name(dtype)), Tensor::from(numbers, {3, 2, 2}, dtype));
  write_safetensors(path, tensors);
  const TensorStream stream(path);
  CHECK(stream.where() == path.string());
  CHECK(stream.whole("labels").integers() == labels);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const std::string key(name(dtype));
    CHECK((stream.has(key) && stream.dtype(key) == dtype && stream.shape(key) == Shape{3, 2, 2}));
    for (const int64_t row : {2, 0, 1}) {
      float values[4];
      stream.row(key, row, values);
      for (size_t i = 0; i < 4; ++i) CHECK(values[i] == numbers[static_cast<size_t>(4 * row) + i]);
    }
  }
}

TEST_CASE("a stream reads half precision as the whole file's reader does, from many threads") {
  const TemporaryFolder folder;
  const auto path = folder / "half.safetensors";
  const std::string header = R"({"h": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}})";
  const uint16_t halves[] = {0x3c00, 0xc000, 0x3555, 0x0001, 0x7bff, 0x8000};  // 1, -2, 1/3, least, most, -0
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  put(path, bytes + header + std::string(reinterpret_cast<const char*>(halves), sizeof halves));
  const std::vector<double> wanted = read_safetensors(path).at("h").values();
  const TensorStream stream(path);
  std::vector<float> values(6);
  parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) stream.row("h", row, values.data() + 3 * row);
  });
  CHECK(std::equal(values.begin(), values.end(), wanted.begin(), wanted.end()));
  CHECK(values[0] == 1);
  CHECK(values[4] == 65504);
}

TEST_CASE("a stream refuses what is not there, and a file that is cut while it is open") {
  const TemporaryFolder folder;
  const auto path = folder / "x.safetensors";
  write_safetensors(path, {{"latents", Tensor::full({4, 8}, 1, DType::f32)},
                           {"labels", Tensor::full({4}, 1, DType::i64)},
                           {"scale", Tensor::full({}, 1, DType::f32)}});
  const TensorStream stream(path);
  float values[8];
  const auto said = [&](const char* name, int64_t row) {
    return error_of([&] { stream.row(name, row, values); });
  };
  CHECK(said("latent", 0).find("has no tensor 'latent'; did you mean 'latents'") != std::string::npos);
  CHECK(said("latents", 4).find("'latents' has no row 4; it is [4, 8]") != std::string::npos);
  CHECK(said("scale", 0).find("'scale' has no row 0; it is []") != std::string::npos);
  CHECK(said("latents", -1).find("no row -1") != std::string::npos);
  CHECK(said("labels", 0).find("is I64, floats are wanted") != std::string::npos);
  CHECK(said("latents", 3).empty());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 64);
  CHECK(said("latents", 3).find(path.string()) != std::string::npos);
  CHECK(error_of([&] { TensorStream{path}; }).find("the file is cut or damaged") != std::string::npos);
}
