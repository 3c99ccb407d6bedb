#include "engine/cuda/algorithm_file.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <filesystem>

#include "engine/core/error.h"
#include "engine/cuda/stream.h"

namespace tessera {

namespace {

using Bytes = std::array<unsigned char, sizeof(cublasLtMatmulAlgo_t)>;
constexpr std::string_view digits = "0123456789abcdef";

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const unsigned char byte : std::bit_cast<Bytes>(algorithm)) {
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

// Nothing for a text that no algorithm of this cuBLASLt has.
std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string& text) {
  Bytes bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t high = digits.find(text[2 * i]), low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return std::bit_cast<cublasLtMatmulAlgo_t>(bytes);
}

std::string this_machine() {
  stream();  // makes the device ready
  cudaDeviceProp properties{};
  expect(cudaGetDeviceProperties(&properties, 0), "device");
  return "cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", " + properties.name;
}

}  // namespace

AlgorithmFile* AlgorithmFile::chosen() {
  static AlgorithmFile* const one = [] {
    const char* path = std::getenv("TESSERA_TUNE");
    return path && *path ? new AlgorithmFile(path) : nullptr;
  }();
  return one;
}

AlgorithmFile::AlgorithmFile(const std::string& path) : path_(path) {
  const std::string header = this_machine();
  const bool is_new = !std::filesystem::exists(path);
  if (!is_new) read(header);
  file_.open(path, std::ios::app);
  if (is_new) file_ << header << std::endl;
  check(file_.good(), "TESSERA_TUNE: ", path, " cannot be written");
}

void AlgorithmFile::read(const std::string& header) {
  std::ifstream file(path_);
  std::string line;
  check(std::getline(file, line).good() && line == header, "TESSERA_TUNE: ", path_, " is of '", line,
        "', here is '", header, "'; give another file");
  while (std::getline(file, line)) {
    const size_t end = line.find(": ");
    if (end == std::string::npos || !algorithm_of(line.substr(end + 2)))
      fail("TESSERA_TUNE: ", path_, ": the line '", line,
           "' is not a product and its algorithm; delete the file");
    algorithms_.emplace(line.substr(0, end), line.substr(end + 2));
  }
}

std::optional<cublasLtMatmulAlgo_t> AlgorithmFile::find(const std::string& product) const {
  const auto found = algorithms_.find(product);
  return found == algorithms_.end() ? std::nullopt : algorithm_of(found->second);
}

void AlgorithmFile::add(const std::string& product, const cublasLtMatmulAlgo_t& algorithm) {
  algorithms_.emplace(product, text_of(algorithm));
  file_ << product << ": " << text_of(algorithm) << std::endl;
  check(file_.good(), "TESSERA_TUNE: ", path_, " cannot be written");
}

}  // namespace tessera
