#include "data/formats/mat.h"

#include "tests/data/files.h"
#include "tests/data/sets/mat_files.h"

namespace tessera {

namespace {

using namespace mat_files;

// The message with which read_mat refuses these bytes.
std::string complaint(const std::string& bytes) {
  const TemporaryFolder folder;
  put(folder / "x.mat", bytes);
  return error_of([&] { read_mat(folder / "x.mat"); });
}

bool complains(const std::string& bytes, const std::string& of) {
  const std::string message = complaint(bytes);
  CAPTURE(message);
  CAPTURE(of);
  CHECK(message.find("x.mat: ") != std::string::npos);
  CHECK(message.find(of) != std::string::npos);
  return message.find(of) != std::string::npos;
}

}  // namespace

TEST_CASE("mat: malformed files are refused by name and place") {
  const Array x = images(1);
  const std::string good = header() + compressed(x.bytes());
  CHECK(complaint(good).empty());
  CHECK(complains("", "header"));
  CHECK(complains(good.substr(0, 100), "header"));
  CHECK(complains(std::string(200, 'x'), "at byte 126"));
  std::string other = good;
  other[125] = 2;
  CHECK(complains(other, "-v7.3"));
  CHECK(complains(good.substr(0, good.size() - 5), "at byte 1"));
  CHECK(complains(good + "abc", "ends here"));
  std::string damaged = good;
  damaged[damaged.size() - 1] = static_cast<char>(damaged.back() ^ 1);  // the checksum
  CHECK(complains(damaged, "damaged"));
  const std::string short_stream = deflated(x.bytes()).substr(0, 200);
  CHECK(complains(header() + word(15) + word(200) + short_stream, "cut short"));
  CHECK(complains(header() + compressed(x.bytes() + std::string(8, 'z')), "goes on"));
  CHECK(complains(header() + compressed(compressed(x.bytes())), "type 15"));
  CHECK(complains(header() + x.bytes() + x.bytes(), "second array"));
}

TEST_CASE("mat: arrays that contradict themselves") {
  const auto with = [](auto&& change) {
    Array x = images(1);
    change(x);
    return header() + x.bytes();
  };
  CHECK(complains(with([](Array& x) { x.array_class = 2; }), "class 2"));
  CHECK(complains(with([](Array& x) { x.array_class = 9 | 0x800; }), "complex"));
  CHECK(complains(with([](Array& x) { x.sizes = {32, 32, 3, 2}; }), "6144 values"));
  CHECK(complains(with([](Array& x) { x.sizes = {32, 32, 3, -1}; }), "size 4 is -1"));
  CHECK(complains(with([](Array& x) { x.sizes = {65536, 65536, 65536, 65536}; }), "more than"));
  CHECK(complains(with([](Array& x) { x.sizes = {3072}; }), "at least two"));
  CHECK(complains(with([](Array& x) { x.sizes = std::vector<int32_t>(9, 1); }), "1 to 32"));
  CHECK(complains(with([](Array& x) { x.name = "a name with spaces"; }), "characters"));
  CHECK(complains(with([](Array& x) { x.name = std::string(64, 'x'); }), "1 to 63"));
  CHECK(complains(with([](Array& x) { x.storage = 14; }), "no numbers"));
  CHECK(complains(with([](Array& x) { x.storage = 9; }), "8 bytes"));
  std::string outside = with([](Array&) {});
  outside.replace(132, 4, word(64));  // the matrix claims to end within its dimensions
  CHECK(complains(outside, "past"));
}

TEST_CASE("mat: pieces that no array begins with, and names that MATLAB would not take") {
  const Array good = images(1);
  const std::string flags = element(6, word(9) + word(0)), sizes = element(5, word(1) + word(1)),
                    name = small_element(1, "x"), values = small_element(2, "v");
  const auto of = [](const std::string& parts) { return header() + element(14, parts); };
  CHECK(complaint(of(flags + sizes + name + values)).empty());
  CHECK(complains(of(element(5, word(9) + word(0))), "begins with its flags, here is an element of type 5"));
  CHECK(
      complains(of(element(6, word(9))), "begins with its flags, here is an element of type 6 and 4 bytes"));
  CHECK(complains(of(small_element(6, "1234") + flags), "begins with its flags"));
  CHECK(complains(of(element(6, word(16) + word(0))), "an array of class 16; numbers (6 to 15) are read"));
  CHECK(
      complains(of(flags + element(6, word(1) + word(1))), "the sizes of an array have type 6 and 8 bytes"));
  CHECK(complains(of(flags + element(5, word(1) + word(1) + "12")), "have type 5 and 10 bytes"));
  CHECK(complains(of(flags + sizes + small_element(2, "x")), "the name of an array has type 2, not int8"));
  CHECK(complains(of(flags + sizes + small_element(1, "") + values), "the name of an array take 0 bytes"));
  for (const char* wrong : {"a{", "a[", "a@", "a:", "a/", "a`", "a^"})
    CHECK(complains(of(flags + sizes + small_element(1, wrong) + values), "other characters than letters"));
  CHECK(complaint(of(flags + sizes + small_element(1, "aZ9_") + values)).empty());
  CHECK(
      complains(of(flags + sizes + name + small_element(200, "v")), "have type 200, which holds no numbers"));
  CHECK(complains(of(flags + sizes + name + word(5 << 16 | 2) + "1234"), "a small element of 5 bytes"));
  CHECK(complains(of(flags + sizes + name + values + std::string(8, 'z')), "8 bytes of x belong to nothing"));
  std::string past = of(flags + sizes + name + element(2, std::string(16, 'v')));
  past.replace(132, 4, word(48));  // the matrix claims to end within its values
  past.replace(past.find(word(1) + word(1)), 8, word(4) + word(4));
  CHECK(complains(past, "the values of x go past the end of the array"));
  CHECK(complains(header() + small_element(14, "1234"), "an element of 4 bytes, the file has 0 more"));
  CHECK(
      complains(header() + word(14) + word(12) + std::string(12, 'x'), "uncompressed ones take a multiple"));
  CHECK(complains(header() + element(9, std::string(8, 'x')), "an element of type 9; arrays (14) are read"));
  CHECK(complains(header() + compressed(small_element(14, "1234")), "an element of type 14; arrays"));
  std::string trailing = compressed(good.bytes());
  trailing.replace(4, 4, word(static_cast<uint32_t>(trailing.size() - 8 + 3)));
  CHECK(complains(header() + trailing + "abc", "3 bytes follow the end of the compressed data"));
}

TEST_CASE("mat: files of another byte order, format or version, and ones of very many arrays") {
  std::string other = header() + images(1).bytes();
  other.replace(126, 2, "MI");
  CHECK(complains(other, "at byte 126: written big-endian"));
  other.replace(126, 2, "IX");
  CHECK(complains(other, "at byte 126: no MATLAB level-5 file"));
  other.replace(0, 4, "\x89HDF");
  CHECK(complains(other, "no MATLAB level-5 file (it is HDF5)"));
  std::string version = header() + images(1).bytes();
  version[124] = 7;
  CHECK(complains(version, "version 1.7; level 5 is 1.0"));
  std::string many = header();
  for (int i = 0; i < 65; ++i) many += Array{"x" + std::to_string(i), 9, {1, 1}, 2, "v"}.bytes();
  CHECK(complains(many, "more than 64 arrays"));
  check_refused([] { read_mat("nowhere/x.mat"); }, "nowhere/x.mat: no such file");
  check_refused([] { MatArray{.name = "x", .sizes = {}, .data = {}}.numbers(); }, "x: holds no numbers");
}

TEST_CASE("mat: an array much larger than its file is verified before it is kept") {
  constexpr int32_t count = 20000;  // 61 MB of zeros
  const Array zeros{"X", 9, {32, 32, 3, count}, 2, std::string(size_t{3072} * count, '\0')};
  const TemporaryFolder folder;
  const std::string file = header() + compressed(zeros.bytes());
  put(folder / "x.mat", file);
  const std::vector<MatArray> arrays = read_mat(folder / "x.mat");
  REQUIRE(arrays.size() == 1);
  CHECK(arrays[0].data == std::vector<uint8_t>(size_t{3072} * count));
  CHECK(complains(file.substr(0, file.size() - 1) + "x", "the compressed data is damaged"));
}

TEST_CASE("mat: numbers of every storage type") {
  const auto numbers = [](uint32_t array_class, uint32_t storage, const std::string& data) {
    const TemporaryFolder folder;
    put(folder / "x.mat", header() + compressed(Array{"x", array_class, {2, 1}, storage, data}.bytes()));
    return read_mat(folder / "x.mat").at(0).numbers();
  };
  const auto bytes_of_two = [](auto first, auto second) {
    std::string bytes(2 * sizeof first, '\0');
    std::memcpy(bytes.data(), &first, sizeof first);
    std::memcpy(bytes.data() + sizeof first, &second, sizeof second);
    return bytes;
  };
  const std::vector<double> wanted{100, -3}, unsigned_wanted{100, 3};
  CHECK(numbers(6, 1, bytes_of_two(int8_t{100}, int8_t{-3})) == wanted);
  CHECK(numbers(6, 2, bytes_of_two(uint8_t{100}, uint8_t{3})) == unsigned_wanted);
  CHECK(numbers(10, 3, bytes_of_two(int16_t{100}, int16_t{-3})) == wanted);
  CHECK(numbers(11, 4, bytes_of_two(uint16_t{100}, uint16_t{3})) == unsigned_wanted);
  CHECK(numbers(12, 5, bytes_of_two(int32_t{100}, int32_t{-3})) == wanted);
  CHECK(numbers(13, 6, bytes_of_two(uint32_t{100}, uint32_t{3})) == unsigned_wanted);
  CHECK(numbers(7, 7, bytes_of_two(100.0f, -3.0f)) == wanted);
  CHECK(numbers(6, 9, bytes_of_two(100.0, -3.0)) == wanted);
  CHECK(numbers(14, 12, bytes_of_two(int64_t{100}, int64_t{-3})) == wanted);
  CHECK(numbers(15, 13, bytes_of_two(uint64_t{100}, uint64_t{3})) == unsigned_wanted);
}

}  // namespace tessera
