#include "engine/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "engine/io/parse.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

namespace {

using Header = nlohmann::json;  // sorted by key, so that a header of a million names is read quickly

constexpr uint64_t largest_header = 100'000'000;  // bytes, the limit of the format's own library
constexpr const char* metadata_key = "__metadata__";
constexpr const char* checksum_key = "xxh3";  // in the metadata of files that are written here

struct StoredType {
  std::string_view name;  // in the file
  size_t bytes;           // an element, there
  DType dtype;            // here
};
constexpr std::array<StoredType, 8> stored_types{{{"F64", 8, DType::f64},
                                                  {"I64", 8, DType::i64},
                                                  {"F32", 4, DType::f32},
                                                  {"BF16", 2, DType::bf16},
                                                  {"U8", 1, DType::u8},
                                                  {"I32", 4, DType::i64},
                                                  {"F16", 2, DType::f32},
                                                  {"BOOL", 1, DType::u8}}};

std::string_view stored_name(DType dtype) {  // the first five keep their type
  return std::find_if(stored_types.begin(), stored_types.end(), [=](auto& t) { return t.dtype == dtype; })
      ->name;
}

struct Entry {
  std::string name;
  const StoredType* type;
  Shape shape;
  uint64_t begin, end;  // bytes after the header
};

// ---- Reading the header ---------------------------------------------------------------------------

// Throws an Error that names the file and one of its tensors.
template <class... Parts>
[[noreturn]] void fail_in(const std::string& where, std::string_view name, const Parts&... parts) {
  fail(where, ": tensor '", json_parse::shortened(std::string(name), 80), "' ", parts...);
}

std::string shown(const Header& value) {
  return json_parse::shortened(value.dump(-1, ' ', false, Header::error_handler_t::replace), 60);
}

const StoredType& type_of(const std::string& where, const std::string& name, const Header& entry) {
  const auto given = entry.find("dtype");
  if (given == entry.end() || !given->is_string()) fail_in(where, name, "has no dtype");
  std::string known;
  for (const StoredType& type : stored_types) {
    if (type.name == given->get_ref<const std::string&>()) return type;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  fail_in(where, name, "has the dtype ", shown(*given), "; those known are ", known);
}

// A list of non-negative integers.
std::vector<int64_t> sizes_of(const std::string& where, const std::string& name, const Header& entry,
                              const char* key) {
  const auto given = entry.find(key);
  if (given == entry.end() || !given->is_array()) fail_in(where, name, "has no ", key);
  std::vector<int64_t> sizes;
  for (const Header& size : *given) {
    if (!size.is_number_unsigned() || !std::in_range<int64_t>(size.get<uint64_t>()))
      fail_in(where, name, "has the ", key, " ", shown(*given), ", wanted a list of sizes");
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

Shape shape_of(const std::string& where, const std::string& name, const Header& entry) {
  const std::vector<int64_t> sizes = sizes_of(where, name, entry, "shape");
  if (sizes.size() > Shape::max_rank)
    fail_in(where, name, "has ", sizes.size(), " axes, at most ", Shape::max_rank, " are supported");
  int64_t bytes = 16;               // as strict as Shape, whose own error does not name the tensor
  for (const int64_t size : sizes)  // a size of 0 does not excuse a huge one
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      fail_in(where, name, "has the shape ", shown(entry.at("shape")), ", which is more than any memory");
  return Shape(sizes);
}

Entry read_entry(const std::string& where, const std::string& name, const Header& entry,
                 uint64_t data_bytes) {
  if (!entry.is_object()) fail_in(where, name, "is ", shown(entry), ", wanted {dtype, shape, data_offsets}");
  const StoredType& type = type_of(where, name, entry);
  const Shape shape = shape_of(where, name, entry);
  const std::vector<int64_t> offsets = sizes_of(where, name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail_in(where, name, "has the data_offsets ", shown(entry["data_offsets"]), ", wanted [begin, end]");
  const auto begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
  if (end > data_bytes)
    fail_in(where, name, "ends at byte ", end, " of the data, of which there are ", data_bytes,
            "; the file is cut or damaged");
  const uint64_t wanted = static_cast<uint64_t>(shape.elements()) * type.bytes;
  if (end - begin != wanted)
    fail_in(where, name, "has ", end - begin, " bytes, ", type.name, " ", shape, " takes ", wanted);
  return {name, &type, shape, begin, end};
}

std::map<std::string, std::string> read_metadata(const std::string& where, const Header& given) {
  check(given.is_object(), where, ": ", metadata_key, " is ", shown(given), ", wanted an object of strings");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : given.items()) {
    check(value.is_string(), where, ": ", metadata_key, ".", json_parse::shortened(key, 80), " is ",
          shown(value), ", wanted a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// Fails unless the tensors follow one another and fill the data, so that no byte is read twice, or never.
void expect_packed(const std::string& where, const std::vector<Entry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < at)
      fail_in(where, entry.name, "begins at byte ", entry.begin, ", inside of the one before it");
    if (entry.begin > at)
      fail_in(where, entry.name, "begins at byte ", entry.begin, "; ", entry.begin - at,
              " bytes before it belong to none");
    at = entry.end;
  }
  check(at == data_bytes, where, ": ", data_bytes - at, " bytes after the last tensor belong to none");
}

// The sum of a file while it is read, if it carries one: over all of it, with zeros for the sum's own digits.
class FileSum {
 public:
  void begin(uint64_t header_bytes, std::string text) {
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

Header read_header(const InputFile& file, uint64_t& header_bytes, FileSum& sum) {
  const std::string where = file.path().string();
  check(file.size() >= 8, where, ": has ", file.size(), " bytes; a safetensors file has at least 8");
  file.read(0, &header_bytes, 8);
  check(header_bytes <= file.size() - 8, where, ": announces a header of ", header_bytes, " bytes, has ",
        file.size(), " in all; it is cut, or no safetensors file");
  check(header_bytes <= largest_header, where, ": has a header of ", header_bytes, " bytes, at most ",
        largest_header, " are read");
  std::string text(header_bytes, '\0');
  file.read(8, text.data(), text.size());
  sum.begin(header_bytes, text);
  const Header header = json_parse::parse<Header>(text, where + ": header");
  check(header.is_object(), where, ": header is ", shown(header), ", wanted an object");
  return header;
}

// ---- Reading the data -----------------------------------------------------------------------------

template <class From, class To, class F> void convert(const void* from, To* to, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    From value;
    std::memcpy(&value, static_cast<const std::byte*>(from) + static_cast<size_t>(i) * sizeof(From),
                sizeof(From));
    to[i] = f(value);
  }
}

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
  if (tensor.dtype() == DType::f32)
    convert<uint16_t>(stored.data(), tensor.data<float>(), tensor.elements(), half_to_float);
  else
    convert<int32_t>(stored.data(), tensor.data<int64_t>(), tensor.elements(),
                     [](int32_t i) { return int64_t{i}; });
  return tensor;
}

// ---- Writing --------------------------------------------------------------------------------------

void expect_writable(const std::string& where, const NamedTensors& tensors) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) fail_in(where, name, "is undefined, so it cannot be written");
    if (!names.insert(name).second) fail_in(where, name, "is given twice");
    if (name == metadata_key) fail_in(where, name, "has the name that is kept for the metadata");
  }
}

// The header after its length, padded with spaces so that the data is aligned.
std::string header_of(const std::string& where, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Header header = Header::object();
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
  } catch (const Header::exception& error) {
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
  TensorFile read{path.string(), {}, {}};
  FileSum sum;
  uint64_t header_bytes = 0;
  const Header header = read_header(file, header_bytes, sum);
  const uint64_t data = 8 + header_bytes, data_bytes = file.size() - data;
  std::vector<Entry> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == metadata_key)
      read.metadata = read_metadata(read.where, entry);
    else
      entries.push_back(read_entry(read.where, name, entry, data_bytes));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  expect_packed(read.where, entries, data_bytes);
  for (const Entry& entry : entries)
    read.tensors.emplace_back(entry.name, read_tensor(file, entry, data, sum));
  sum.expect_equal(read.where);
  read.checked = sum.carried();
  if (read.checked) read.metadata.erase(checksum_key);
  return read;
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  FileSum unused;
  uint64_t header_bytes = 0;
  const Header header = read_header(InputFile(path), header_bytes, unused);
  const auto found = header.find(metadata_key);
  return found == header.end() ? std::map<std::string, std::string>{} : read_metadata(path.string(), *found);
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
