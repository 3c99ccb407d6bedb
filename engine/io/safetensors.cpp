#include "engine/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "engine/io/parse.h"
#include "engine/io/safetensors_header.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

using namespace safetensors;

namespace {

using Document = nlohmann::json;

std::string_view stored_name(DType dtype) {  // the first five keep their type
  return std::find_if(stored_types.begin(), stored_types.end(), [=](auto& t) { return t.dtype == dtype; })
      ->name;
}

// The sum of a file while it is read, if it carries one: over all of it, with zeros for the sum's own digits.
class FileSum {
 public:
  void begin(std::string text) {
    const uint64_t header_bytes = text.size();
    const std::string before = key_text();
    const size_t at = text.find(before);
    if (at == text.npos || at + before.size() + Checksum::digits > text.size()) return;
    const size_t first = at + before.size();
    wanted_ = text.substr(first, Checksum::digits);
    text.replace(first, Checksum::digits, Checksum::digits, '0');
    sum_.add(&header_bytes, sizeof header_bytes);
    sum_.add(text.data(), text.size());
  }
  void add(const void* bytes, size_t count) {
    if (carried()) sum_.add(bytes, count);
  }
  bool carried() const { return !wanted_.empty(); }
  void expect_equal(const std::string& where) const {
    if (carried() && sum_.text() != wanted_)
      fail(where, ": is damaged: its bytes have the checksum ", sum_.text(), ", the file says ",
           json_parse::shortened(wanted_, 40), "; take a copy of it from elsewhere");
  }
  // The text of the key in a header, up to the digits. Within a string its quotes would be escaped.
  static std::string key_text() { return std::string("\"") + checksum_key + "\":\""; }

 private:
  Checksum sum_;
  std::string wanted_;
};

Tensor read_tensor(const InputFile& file, const Entry& entry, uint64_t data, FileSum& sum) {
  Tensor tensor = Tensor::empty(entry.shape, entry.type->dtype);
  const uint64_t at = data + entry.begin;
  if (entry.type->bytes == size_of(tensor.dtype())) {
    file.read(at, tensor.raw(), tensor.bytes());
    sum.add(tensor.raw(), tensor.bytes());
    return tensor;
  }
  std::string stored(entry.end - entry.begin, '\0');
  file.read(at, stored.data(), stored.size());
  sum.add(stored.data(), stored.size());
  convert(*entry.type, stored.data(), tensor.elements(), tensor.raw());
  return tensor;
}

// ---- Writing --------------------------------------------------------------------------------------

void expect_writable(const std::string& where, const NamedTensors& tensors) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) fail(tensor_in(where, name), "is undefined, so it cannot be written");
    if (!names.insert(name).second) fail(tensor_in(where, name), "is given twice");
    if (name == metadata_key) fail(tensor_in(where, name), "has the name that is kept for the metadata");
  }
}

// The header after its length, padded with spaces so that the data is aligned.
std::string header_of(const std::string& where, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Document header = Document::object();
  header[metadata_key] = metadata;
  header[metadata_key][checksum_key] = std::string(Checksum::digits, '0');
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", stored_name(tensor.dtype())},
                    {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                    {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Document::exception& error) {
    fail(where, ": a name or its metadata is not UTF-8: ", json_parse::complaint(error.what()));
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text;
}

}  // namespace

const Tensor* TensorFile::find(std::string_view name) const {
  for (const auto& [own, tensor] : tensors)
    if (own == name) return &tensor;
  return nullptr;
}

const Tensor& TensorFile::at(std::string_view name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  std::vector<std::string> known;
  for (const auto& [own, tensor] : tensors) known.push_back(own);
  fail(where, ": has no tensor '", name, "'", did_you_mean(name, known));
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  const Header header = read_header(file);
  TensorFile read{path.string(), {}, header.metadata};
  FileSum sum;
  sum.begin(header.text);
  for (const Entry& entry : header.entries)
    read.tensors.emplace_back(entry.name, read_tensor(file, entry, header.data, sum));
  sum.expect_equal(read.where);
  read.checked = sum.carried();
  if (read.checked) read.metadata.erase(checksum_key);
  return read;
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  return read_header(InputFile(path)).metadata;
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  expect_writable(path.string(), tensors);
  NamedTensors sorted;  // and on the host
  for (const auto& [name, tensor] : tensors) sorted.emplace_back(name, tensor.to(Device::cpu));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  std::string header = header_of(path.string(), sorted, metadata);
  Checksum sum;
  sum.add(header.data(), header.size());
  for (const auto& [name, tensor] : sorted) sum.add(tensor.raw(), tensor.bytes());
  header.replace(header.find(FileSum::key_text()) + FileSum::key_text().size(), Checksum::digits, sum.text());
  std::vector<std::string_view> pieces{header};
  for (const auto& [name, tensor] : sorted)
    pieces.emplace_back(static_cast<const char*>(tensor.raw()), tensor.bytes());
  write_file_atomically(path, pieces);
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 0x1fu,
                 fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);  // infinity, NaN
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;  // subnormal, or zero
  return sign ? -small : small;
}

}  // namespace tessera
