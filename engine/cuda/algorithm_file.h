#pragma once

#include <cublasLt.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace tessera {

// The algorithms that were the fastest for some products on this GPU, remembered in a text file: timing again
// might choose others, whose sums have other bits. Its first line names cuBLASLt's version and the GPU; each
// other line has a product and an algorithm.
class AlgorithmFile {
 public:
  // The file that TESSERA_TUNE names, or null. Fails where it cannot be read or written, or is of another GPU
  // or version.
  static AlgorithmFile* chosen();

  std::optional<cublasLtMatmulAlgo_t> find(const std::string& product) const;
  void add(const std::string& product, const cublasLtMatmulAlgo_t& algorithm);

 private:
  explicit AlgorithmFile(const std::string& path);
  void read(const std::string& header);

  std::string path_;
  std::map<std::string, std::string> algorithms_;  // the algorithm's bytes as hexadecimal digits
  std::ofstream file_;
};

}  // namespace tessera
