#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/parse.h"
#include "engine/io/safetensors.h"

namespace tessera::safetensors {

namespace {

using Document = nlohmann::json;  // sorted by key, so that a header of a million names is read quickly

constexpr uint64_t largest_header = 100'000'000;  // bytes, the limit of the format's own library

template <class... Parts>
[[noreturn]] void fail_in(const std::string& where, std::string_view name, const Parts&... parts) {
  fail(tensor_in(where, name), parts...);
}

std::string shown(const Document& value) {
  return json_parse::shortened(value.dump(-1, ' ', false, Document::error_handler_t::replace), 60);
}

const StoredType& type_of(const std::string& where, const std::string& name, const Document& entry) {
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
std::vector<int64_t> sizes_of(const std::string& where, const std::string& name, const Document& entry,
                              const char* key) {
  const auto given = entry.find(key);
  if (given == entry.end() || !given->is_array()) fail_in(where, name, "has no ", key);
  std::vector<int64_t> sizes;
  for (const Document& size : *given) {
    if (!size.is_number_unsigned() || !std::in_range<int64_t>(size.get<uint64_t>()))
      fail_in(where, name, "has the ", key, " ", shown(*given), ", wanted a list of sizes");
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

Shape shape_of(const std::string& where, const std::string& name, const Document& entry) {
  const std::vector<int64_t> sizes = sizes_of(where, name, entry, "shape");
  if (sizes.size() > Shape::max_rank)
    fail_in(where, name, "has ", sizes.size(), " axes, at most ", Shape::max_rank, " are supported");
  int64_t bytes = 16;               // as strict as Shape, whose own error does not name the tensor
  for (const int64_t size : sizes)  // a size of 0 does not excuse a huge one
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      fail_in(where, name, "has the shape ", shown(entry.at("shape")), ", which is more than any memory");
  return Shape(sizes);
}

Entry read_entry(const std::string& where, const std::string& name, const Document& entry,
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

std::map<std::string, std::string> read_metadata(const std::string& where, const Document& given) {
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

std::string read_header_text(const InputFile& file) {
  const std::string where = file.path().string();
  uint64_t header_bytes = 0;
  check(file.size() >= 8, where, ": has ", file.size(), " bytes; a safetensors file has at least 8");
  file.read(0, &header_bytes, 8);
  check(header_bytes <= file.size() - 8, where, ": announces a header of ", header_bytes, " bytes, has ",
        file.size(), " in all; it is cut, or no safetensors file");
  check(header_bytes <= largest_header, where, ": has a header of ", header_bytes, " bytes, at most ",
        largest_header, " are read");
  std::string text(header_bytes, '\0');
  file.read(8, text.data(), text.size());
  return text;
}

template <class From, class To, class F> void convert_each(const void* from, To* to, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) {
    From value;
    std::memcpy(&value, static_cast<const std::byte*>(from) + static_cast<size_t>(i) * sizeof(From),
                sizeof(From));
    to[i] = f(value);
  }
}

}  // namespace

std::string tensor_in(const std::string& where, std::string_view name) {
  return where + ": tensor '" + json_parse::shortened(std::string(name), 80) + "' ";
}

Header read_header(const InputFile& file) {
  const std::string where = file.path().string();
  Header header;
  header.text = read_header_text(file);
  header.data = 8 + header.text.size();
  const uint64_t data_bytes = file.size() - header.data;
  const Document document = json_parse::parse<Document>(header.text, where + ": header");
  check(document.is_object(), where, ": header is ", shown(document), ", wanted an object");
  for (const auto& [name, entry] : document.items()) {
    if (name == metadata_key)
      header.metadata = read_metadata(where, entry);
    else
      header.entries.push_back(read_entry(where, name, entry, data_bytes));
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  expect_packed(where, header.entries, data_bytes);
  return header;
}

void convert(const StoredType& type, const void* stored, int64_t count, void* to) {
  if (type.bytes == size_of(type.dtype))
    std::memcpy(to, stored, static_cast<size_t>(count) * type.bytes);
  else if (type.dtype == DType::f32)
    convert_each<uint16_t>(stored, static_cast<float*>(to), count, half_to_float);
  else
    convert_each<int32_t>(stored, static_cast<int64_t*>(to), count, [](int32_t i) { return int64_t{i}; });
}

}  // namespace tessera::safetensors
