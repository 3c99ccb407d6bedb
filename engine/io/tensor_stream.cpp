#include "engine/io/tensor_stream.h"

#include <algorithm>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/per_thread.h"
#include "engine/io/safetensors_header.h"

namespace tessera {

using safetensors::Entry;

struct TensorStream::Content {
  explicit Content(const std::filesystem::path& path) : file(path), header(safetensors::read_header(file)) {}

  const Entry* find(std::string_view name) const {
    for (const Entry& entry : header.entries)
      if (entry.name == name) return &entry;
    return nullptr;
  }
  const Entry& at(const std::string& where, std::string_view name) const {
    if (const Entry* entry = find(name)) return *entry;
    std::vector<std::string> known;
    for (const Entry& entry : header.entries) known.push_back(entry.name);
    fail(where, ": has no tensor '", name, "'", did_you_mean(std::string(name), known));
  }
  void read(const Entry& entry, uint64_t first, int64_t count, void* to) const {
    const size_t bytes = static_cast<size_t>(count) * entry.type->bytes;
    static const PerThread<std::vector<char>> of_all;
    std::vector<char>& stored = of_all.of_this_thread();
    stored.resize(bytes);
    file.read(header.data + entry.begin + first * entry.type->bytes, stored.data(), bytes);
    safetensors::convert(*entry.type, stored.data(), count, to);
  }

  InputFile file;
  safetensors::Header header;
};

TensorStream::TensorStream(const std::filesystem::path& path)
    : where_(path.string()), content_(std::make_unique<Content>(path)) {}
TensorStream::~TensorStream() = default;
TensorStream::TensorStream(TensorStream&&) noexcept = default;

bool TensorStream::has(std::string_view name) const { return content_->find(name) != nullptr; }
const Shape& TensorStream::shape(std::string_view name) const { return content_->at(where_, name).shape; }
DType TensorStream::dtype(std::string_view name) const { return content_->at(where_, name).type->dtype; }

Tensor TensorStream::whole(std::string_view name) const {
  const Entry& entry = content_->at(where_, name);
  Tensor tensor = Tensor::empty(entry.shape, entry.type->dtype);
  content_->read(entry, 0, tensor.elements(), tensor.raw());
  return tensor;
}

void TensorStream::row(std::string_view name, int64_t row, float* to) const {
  const Entry& entry = content_->at(where_, name);
  check(is_float(entry.type->dtype), safetensors::tensor_in(where_, name), "is ", entry.type->name,
        ", floats are wanted");
  check(entry.shape.rank() > 0 && row >= 0 && row < entry.shape[0], safetensors::tensor_in(where_, name),
        "has no row ", row, "; it is ", entry.shape);
  const int64_t count = entry.shape.elements() / entry.shape[0];
  const uint64_t first = static_cast<uint64_t>(row) * static_cast<uint64_t>(count);
  if (entry.type->dtype == DType::f32) return content_->read(entry, first, count, to);
  const Tensor values = Tensor::empty({count}, entry.type->dtype);
  content_->read(entry, first, count, values.raw());
  const Tensor floats = values.to(DType::f32);
  std::copy_n(floats.data<float>(), count, to);
}

}  // namespace tessera
