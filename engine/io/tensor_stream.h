#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "engine/core/tensor.h"

namespace tessera {

/// A safetensors file that is read in parts, because it may be larger than the memory. Opening it reads the
/// header and checks all that read_safetensors() checks, save the checksum, for which every byte would have
/// to be read. Many threads may read at once.
class TensorStream {
 public:
  explicit TensorStream(const std::filesystem::path& path);
  ~TensorStream();
  TensorStream(TensorStream&&) noexcept;

  const std::string& where() const { return where_; }  ///< the path, for errors
  bool has(std::string_view name) const;
  /// Shape and type of a tensor, F16 being f32 and I32 i64. They fail where there is none, and suggest the
  /// nearest name.
  const Shape& shape(std::string_view name) const;
  DType dtype(std::string_view name) const;
  Tensor whole(std::string_view name) const;
  /// Writes entry `row` of the first axis, as floats. Fails for a tensor of integers or without that row, and
  /// where the file has been cut meanwhile.
  void row(std::string_view name, int64_t row, float* to) const;

 private:
  struct Content;
  std::string where_;
  std::unique_ptr<Content> content_;
};

}  // namespace tessera
