#include "data/sets/svhn.h"

#include "data/formats/mat.h"
#include "data/registry.h"
#include "tests/data/files.h"
#include "tests/data/sets/mat_files.h"
#include "tests/error_of.h"

namespace tessera {

namespace {

using namespace mat_files;

uint8_t pixel(int row, int column, int channel, int image) {
  return static_cast<uint8_t>(7 * row + 3 * column + 50 * channel + 11 * image);
}

std::string svhn_file(int32_t count, const std::string& y) {
  return header() + compressed(images(count, pixel).bytes()) + compressed(labels(y).bytes());
}

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

TEST_CASE("svhn: pixels are turned, label 10 is digit 0") {
  const TemporaryFolder folder;
  put(folder / "train_32x32.mat", svhn_file(3, "\x0a\x01\x09"));
  put(folder / "test_32x32.mat",  // uncompressed, labels first, as doubles
      header() + Array{"y", 6, {2, 1}, 9, std::string("\0\0\0\0\0\0\x24\x40\0\0\0\0\0\0\0\x40", 16)}.bytes() +
          images(2, pixel).bytes());
  const Dataset data = open_dataset("svhn", folder.path());
  CHECK(data.train->size() == 3);
  CHECK(data.validation->size() == 2);
  CHECK(data.train->label(0) == 0);
  CHECK(data.train->label(1) == 1);
  CHECK(data.train->label(2) == 9);
  CHECK(data.validation->label(0) == 0);
  CHECK(data.validation->label(1) == 2);
  CHECK(data.notes.size() == 2);
  const Image image = picture(*data.train, 2);
  for (const auto& [row, column] : {std::pair{0, 0}, std::pair{5, 17}, std::pair{31, 2}})
    for (int channel = 0; channel < 3; ++channel)
      CHECK(image.at(row, column)[channel] == pixel(row, column, channel, 2));
}

TEST_CASE("svhn: what it refuses") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& train, const std::string& why) {
    put(folder / "train_32x32.mat", train);
    put(folder / "test_32x32.mat", svhn_file(1, "\x01"));
    check_refused([&] { open_dataset("svhn", folder.path()); }, "svhn", "train_32x32.mat", why);
  };
  refused(header() + labels("\x01").bytes(), "no array X");
  refused(header() + images(2, pixel).bytes(), "no array y");
  refused(header() + images(2, pixel).bytes() + labels("\x01").bytes(), "1 labels for 2 images");
  Array flat = images(2, pixel);
  flat.sizes = {32, 96, 2};
  refused(header() + flat.bytes() + labels("\x01\x02").bytes(), "32 x 32 x 3");
  refused(svhn_file(2, std::string("\x01\x00", 2)), "label 1 is 0");
  refused(svhn_file(2, "\x0b\x01"), "label 0 is 11");
  check_refused([] { open_dataset("svhn", "/nonexistent"); }, "svhn", "train_32x32.mat");
  check_refused([&] { open_dataset("svhn", folder.path(), {.image_size = 64}); }, "32 x 32");
}

TEST_CASE("mat: malformed files are refused by name and place") {
  const Array x = images(1, pixel);
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
    Array x = images(1, pixel);
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
