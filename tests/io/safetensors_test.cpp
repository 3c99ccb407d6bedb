#include "engine/io/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "engine/core/error.h"
#include "engine/core/random.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

using namespace tessera;

namespace {

std::string file_with(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

// The error of reading a file of these bytes, without the path; "" if there is none.
std::string read_error(const std::string& bytes) {
  static const TemporaryFolder folder;
  const auto path = folder / "x.safetensors";
  put(path, bytes);
  const std::string said = error_of([&] { read_safetensors(path); });
  CHECK((said.empty() || said.find(path.string() + ": ") == 0));
  return said.empty() ? said : said.substr(path.string().size() + 2);
}

std::string header_error(const std::string& header, size_t data_bytes) {
  return read_error(file_with(header, std::string(data_bytes, '\1')));
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\": \"" + dtype + "\", \"shape\": " + shape + ", \"data_offsets\": " + offsets + "}";
}

std::string raw_bytes(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

}  // namespace

TEST_CASE("tensors of every type, shape and name come back bit by bit, the widest first") {
  const TemporaryFolder folder;
  const NamedTensors written = {{"u8", Tensor::from({1, 0, 255}, {3}, DType::u8)},
                                {"bf16", Tensor::from({1.5, -2}, {2, 1}, DType::bf16)},
                                {"f32", Tensor::from({NAN, -0.0, INFINITY, 1e-45}, {2, 2}, DType::f32)},
                                {"i64", Tensor::from(std::initializer_list<double>{-7}, {}, DType::i64)},
                                {"empty", Tensor::empty({3, 0}, DType::f32)},
                                {"f64 \"ü\"\n", Tensor::from({1.0 / 3}, {1, 1, 1}, DType::f64)}};
  const std::map<std::string, std::string> metadata = {{"config", "{\"a\": 1}"}, {"", "é"}};
  write_safetensors(folder / "x", written, metadata);
  const TensorFile read = read_safetensors(folder / "x");
  CHECK(read.metadata == metadata);
  REQUIRE(read.tensors.size() == written.size());
  for (const auto& [name, tensor] : written) {
    const Tensor& back = read.at(name);
    CHECK(back.shape() == tensor.shape());
    CHECK(back.dtype() == tensor.dtype());
    CHECK(raw_bytes(back) == raw_bytes(tensor));
  }
  std::vector<std::string> order;
  for (const auto& [name, tensor] : read.tensors) order.push_back(name);
  CHECK(order == std::vector<std::string>{"i64", "f64 \"ü\"\n", "f32", "empty", "bf16", "u8"});
  const std::string bytes = bytes_of(folder / "x");
  CHECK(static_cast<unsigned char>(bytes[0]) % 8 == 0);  // the header's length: the data is aligned
  CHECK(folder.entries() == 1);
}

TEST_CASE("a file without tensors, and one without metadata") {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {});
  const TensorFile read = read_safetensors(folder / "x");
  CHECK(read.tensors.empty());
  CHECK(read.metadata.empty());
}

TEST_CASE("a tensor that is missing is named, with the nearest") {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"head.weight", Tensor::zeros({1})}});
  const TensorFile read = read_safetensors(folder / "x");
  CHECK(read.find("head.weight") != nullptr);
  CHECK(read.find("head") == nullptr);
  CHECK(error_of([&] { read.at("head.wight"); }) ==
        (folder / "x").string() + ": has no tensor 'head.wight'; did you mean 'head.weight'?");
}

TEST_CASE("a file of another program: PyTorch's moments, in both widths") {
  const TensorFile read = read_safetensors(TESSERA_FIXTURES "/augment/adamw.safetensors");
  CHECK(read.metadata.at("torch") == "1.13.0a0");
  CHECK(read.at("decay.exp_avg64.weight.5").dtype() == DType::f64);
  CHECK(read.at("param.weight.0").shape() == Shape{4, 5});
  const Tensor wide = read.at("decay.param64.bias.1"), narrow = read.at("decay.param.bias.1");
  for (size_t i = 0; i < 5; ++i) CHECK(narrow.values()[i] == doctest::Approx(wide.values()[i]).epsilon(1e-6));
}

TEST_CASE("half precision, 32-bit integers and truth values are widened") {
  const TemporaryFolder folder;
  const int32_t integer = -2147483647;
  std::string data(4, '\0');
  std::memcpy(data.data(), &integer, 4);
  data += std::string("\x00\x3c\x00\xc0", 4) + std::string("\1\0", 2);  // 1 and -2 in half; true, false
  put(folder / "x",
      file_with("{\"i\": " + entry("I32", "[1]", "[0, 4]") + ", \"h\": " + entry("F16", "[2]", "[4, 8]") +
                    ", \"b\": " + entry("BOOL", "[2]", "[8, 10]") + "}",
                data));
  const TensorFile read = read_safetensors(folder / "x");
  CHECK(read.at("i").integers() == std::vector<int64_t>{integer});
  CHECK(read.at("h").dtype() == DType::f32);
  CHECK(read.at("h").values() == std::vector<double>{1, -2});
  CHECK(read.at("b").dtype() == DType::u8);
  CHECK(read.at("b").integers() == std::vector<int64_t>{1, 0});
}

TEST_CASE("every half precision number has its value") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    double wanted = std::ldexp(exponent == 0 ? fraction : 1024 + fraction, std::max(exponent, 1) - 25);
    if (exponent == 31) wanted = fraction == 0 ? INFINITY : NAN;
    if (bits & 0x8000) wanted = -wanted;
    if (std::isnan(wanted) ? !std::isnan(value) : double{value} != wanted)
      FAIL_CHECK("half ", bits, " is ", value);
    if (std::signbit(value) != ((bits & 0x8000) != 0)) FAIL_CHECK("half ", bits, " has the wrong sign");
  }
}

TEST_CASE("what is cut, empty or no safetensors file is refused") {
  CHECK(read_error("") == "has 0 bytes; a safetensors file has at least 8");
  CHECK(read_error("short") == "has 5 bytes; a safetensors file has at least 8");
  CHECK(read_error("\x89PNG\r\n\x1a\n....").find("announces a header of ") == 0);
  CHECK(read_error(std::string(8, '\xff') + "{}")
            .find("announces a header of 18446744073709551615 bytes, has 10 in all") == 0);
  CHECK(read_error(std::string(8, '\0')).find("header: line 1, column 1: ") == 0);
  CHECK(header_error("[1]", 0) == "header is [1], wanted an object");
  CHECK(header_error("{\"a\": ", 0).find("header: line 1, column 7: ") == 0);
  CHECK(header_error("{\"a\": 3}", 0) == "tensor 'a' is 3, wanted {dtype, shape, data_offsets}");
  CHECK(header_error(std::string(200000, '['), 0).find("header: line 1, column 101: more than 100 levels") ==
        0);
  CHECK(header_error("\xff\xfe", 0).find("header: line 1, column 1: ") == 0);
}

TEST_CASE("an entry that lacks something, or has it in another form, is refused by name") {
  const auto error = [](const std::string& e) { return header_error("{\"a\": " + e + "}", 8); };
  CHECK(error("{}") == "tensor 'a' has no dtype");
  CHECK(error(R"({"dtype": 1})") == "tensor 'a' has no dtype");
  CHECK(error(entry("F8_E4M3", "[8]", "[0, 8]")) ==
        "tensor 'a' has the dtype \"F8_E4M3\"; those known are F64, I64, F32, BF16, U8, I32, F16, BOOL");
  CHECK(error(R"({"dtype": "F32"})") == "tensor 'a' has no shape");
  CHECK(error(R"({"dtype": "F32", "shape": [2]})") == "tensor 'a' has no data_offsets");
  for (const char* shape : {"[-2]", "[2.0]", "[\"2\"]", "[null]", "[18446744073709551615]"})
    CHECK(error(entry("F32", shape, "[0, 8]")).find("tensor 'a' has the shape [") == 0);
  CHECK(error(entry("F32", "[1,1,1,1,1,1,1,1,2]", "[0, 8]")) ==
        "tensor 'a' has 9 axes, at most 8 are supported");
  for (const char* offsets : {"[8, 0]", "[0]", "[0, 4, 8]", "[]"})
    CHECK(error(entry("F32", "[2]", offsets)).find("tensor 'a' has the data_offsets [") == 0);
  CHECK(error(R"({"dtype": "F32", "shape": 2})") == "tensor 'a' has no shape");
  CHECK(error(entry("F32", "[2]", "[0, -8]"))
            .find("tensor 'a' has the data_offsets [0,-8], wanted a list of sizes") == 0);
}

TEST_CASE("shapes that overflow are refused, whatever else they hold") {
  for (const char* shape : {"[4294967296, 4294967296]", "[0, 4294967296, 4294967296]",
                            "[4294967296, 4294967296, 0]", "[9223372036854775807]", "[4611686018427387904]"})
    CHECK(header_error("{\"a\": " + entry("F32", shape, "[0, 0]") + "}", 0)
              .find("which is more than any memory") != std::string::npos);
}

TEST_CASE("offsets must match the shape, stay in the file, and neither overlap nor leave bytes out") {
  const auto error = [](const std::string& a, const std::string& b, size_t bytes) {
    return header_error("{\"a\": " + a + ", \"b\": " + b + "}", bytes);
  };
  const std::string first = entry("F32", "[2]", "[0, 8]");
  CHECK(error(first, entry("F32", "[1]", "[8, 12]"), 12) == "");
  CHECK(error(first, entry("F32", "[2]", "[8, 12]"), 12) == "tensor 'b' has 4 bytes, F32 [2] takes 8");
  CHECK(error(first, entry("F32", "[1]", "[8, 12]"), 11) ==
        "tensor 'b' ends at byte 12 of the data, of which there are 11; the file is cut or damaged");
  CHECK(error(first, entry("U8", "[1]", "[7, 8]"), 8) ==
        "tensor 'b' begins at byte 7, inside of the one before it");
  CHECK(error(first, entry("U8", "[2]", "[10, 12]"), 12) ==
        "tensor 'b' begins at byte 10; 2 bytes before it belong to none");
  CHECK(error(first, entry("U8", "[1]", "[8, 9]"), 12) == "3 bytes after the last tensor belong to none");
  CHECK(error(first, entry("U8", "[0]", "[8, 8]"), 8) == "");
  CHECK(error(first, entry("U8", "[0]", "[4, 4]"), 8) ==
        "tensor 'b' begins at byte 4, inside of the one before it");
}

TEST_CASE("names given twice, and metadata that is not text, are refused") {
  const std::string a = "\"a\": " + entry("U8", "[1]", "[0, 1]");
  CHECK(header_error("{" + a + ", " + a + "}", 1).find("the key 'a' is given twice in one object") !=
        std::string::npos);
  CHECK(header_error(R"({"__metadata__": {"k": 1}})", 0) == "__metadata__.k is 1, wanted a string");
  CHECK(header_error(R"({"__metadata__": "k"})", 0) == "__metadata__ is \"k\", wanted an object of strings");
}

TEST_CASE(
    "a header of very many names is read in reasonable time, and the last of them is told from the first") {
  std::string header = "{";
  for (int i = 0; i < 30000; ++i)
    header += "\"" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},";
  CHECK(header_error(header + "\"0\":1}", 0).find("the key '0' is given twice") != std::string::npos);
  CHECK(header_error(header + "\"z\":1}", 0).find("tensor 'z' is 1") == 0);
}

TEST_CASE("a file cut at any byte, or with any byte changed, is read or refused, never more") {
  const TemporaryFolder folder;
  write_safetensors(folder / "x",
                    {{"a", Tensor::from({1, 2}, {2})}, {"b", Tensor::from({3}, {1}, DType::u8)}},
                    {{"k", "v"}});
  const std::string whole = bytes_of(folder / "x");
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string said = read_error(whole.substr(0, length));
    CAPTURE(said);
    CHECK((said.starts_with("has ") || said.starts_with("announces a header of ") ||
           said.find("the file is cut or damaged") != std::string::npos));
  }
  CHECK(read_error(whole + "x") == "1 bytes after the last tensor belong to none");
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole;
    for (int j = 0; j <= i % 3; ++j)
      damaged[static_cast<size_t>(random.below(static_cast<int64_t>(damaged.size())))] =
          static_cast<char>(random.below(256));
    read_error(damaged);  // throws nothing but Error; the sanitizers see the rest
  }
}

TEST_CASE("a file says by its own checksum that a byte of it was changed") {
  const TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", Tensor::from({1, 2}, {2})}}, {{"k", "v"}});
  const std::string whole = bytes_of(folder / "x");
  const TensorFile read = read_safetensors(folder / "x");
  CHECK(read.checked);
  CHECK(read.metadata == std::map<std::string, std::string>{{"k", "v"}});
  CHECK(read_safetensors_metadata(folder / "x").at("xxh3").size() == 32);
  std::string damaged = whole;
  damaged.back() ^= 1;
  CHECK(read_error(damaged).find("is damaged: its bytes have the checksum ") == 0);
  CHECK(read_error(damaged).find("; take a copy of it from elsewhere") != std::string::npos);
  // Another program's key of the name, too short for a sum, is text like any other.
  put(folder / "x", file_with(R"({"__metadata__":{"xxh3":"12"}})", ""));
  CHECK_FALSE(read_safetensors(folder / "x").checked);
  CHECK(read_safetensors(folder / "x").metadata.at("xxh3") == "12");
}

TEST_CASE("a header larger than the format allows is refused before it is read") {
  const TemporaryFolder folder;
  const uint64_t length = 100'000'001;
  put(folder / "x", std::string(reinterpret_cast<const char*>(&length), 8));
  std::filesystem::resize_file(folder / "x", length + 8);  // no block of it is stored
  CHECK(error_of([&] { read_safetensors(folder / "x"); }) ==
        (folder / "x").string() + ": has a header of 100000001 bytes, at most 100000000 are read");
}

TEST_CASE("what cannot be written is refused, and no file is made") {
  const TemporaryFolder folder;
  const Tensor one = Tensor::zeros({1});
  const auto error = [&](const NamedTensors& tensors, const std::map<std::string, std::string>& metadata) {
    return error_of([&] { write_safetensors(folder / "x", tensors, metadata); });
  };
  CHECK(error({{"a", Tensor()}}, {}).find("tensor 'a' is undefined") != std::string::npos);
  CHECK(error({{"a", one}, {"a", one}}, {}).find("tensor 'a' is given twice") != std::string::npos);
  CHECK(error({{"__metadata__", one}}, {}).find("kept for the metadata") != std::string::npos);
  CHECK(error({{"\xff", one}}, {}).find("not UTF-8") != std::string::npos);
  CHECK(error({{"a", one}}, {{"k", "\xff"}}).find("not UTF-8") != std::string::npos);
  CHECK(folder.entries() == 0);
  CHECK(error_of([&] {
          write_safetensors(folder / "none/x", {{"a", one}});
        }).find("none/x: cannot make") != std::string::npos);
}
