// A malformed file is refused with memory bounded by its size plus 64 MB, whatever it claims.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "data/formats/mat.h"
#include "data/formats/numpy.h"
#include "data/sets/cifar.h"
#include "data/sets/latents.h"
#include "data/sets/mnist.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"
#include "tests/data/sets/mat_files.h"
#include "tests/error_of.h"
#include "tests/sanitized.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr int64_t allowance = int64_t{64} << 20;

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct Refusal {
  std::string message;
  int64_t growth = -1;  // peak memory in bytes, above that before the call
};

// Runs f() in a process of its own and returns its refusal and memory.
Refusal refusal_of(const std::function<void()>& f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Refusal refusal;
    const int64_t before = resident_bytes();
    refusal.message = error_of(f).substr(0, 400);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    refusal.growth = int64_t{usage.ru_maxrss} * 1024 - before;
    const bool told = write(ends[1], &refusal.growth, 8) == 8 &&
                      write(ends[1], refusal.message.data(), refusal.message.size()) >= 0;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  Refusal refusal;
  char text[400];
  const ssize_t measured = read(ends[0], &refusal.growth, 8);
  for (ssize_t got = measured; (got = read(ends[0], text, sizeof text)) > 0;)
    refusal.message.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  return refusal;
}

// Checks that f() refuses the file by name and within the memory bound.
void check_bounded(const fs::path& path, const std::function<void()>& f) {
  const Refusal refusal = refusal_of(f);
  CAPTURE(refusal.message);
  CHECK(refusal.message.find(path.string()) != std::string::npos);
  if (!sanitized)  // whose own memory would be counted
    CHECK(refusal.growth < static_cast<int64_t>(fs::file_size(path)) + allowance);
}

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// A ZIP archive of one file, deflated.
std::string deflated_archive(const std::string& name, const std::string& content) {
  std::string packed(compressBound(content.size()), '\0');
  z_stream z{};
  REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  const auto little = [](uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value & 255);
    return text;
  };
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::string common = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4) + little(crc, 4) +
                             little(packed.size(), 4) + little(content.size(), 4) + little(name.size(), 2) +
                             little(0, 2);
  const std::string local = "PK\x03\x04" + common + name + packed;
  const std::string directory = "PK\x01\x02" + little(20, 2) + common + little(0, 14) + name;
  return local + directory + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2) +
         little(directory.size(), 4) + little(local.size(), 4) + little(0, 2);
}

std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string summed = type + data;
  return big_endian(static_cast<uint32_t>(data.size())) + summed +
         big_endian(static_cast<uint32_t>(
             crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size()))));
}

// A PNG of 8000 x 8000 pixels with intact chunks, whose inflated data is `raw`.
std::string large_png(const std::string& raw) {
  return std::string("\x89PNG\r\n\x1a\n") +
         png_chunk("IHDR", big_endian(8000) + big_endian(8000) + std::string("\x08\x02\0\0\0", 5)) +
         png_chunk("IDAT", mat_files::deflated(raw)) + png_chunk("IEND", "");
}

std::string corpus(const std::string& name) { return bytes_of(TESSERA_SOURCE "/tests/fuzz/corpus/" + name); }

}  // namespace

TEST_CASE("bounded memory: pictures that claim more than they hold") {
  const TemporaryFolder folder;
  const fs::path path = folder / "large";
  const auto refuse = [&](const std::string& bytes) {
    put(path, bytes);
    check_bounded(path, [&] { load_image(path); });
  };
  refuse(large_png(std::string(1 << 20, '\0')));
  std::string bad_filter(24001 * 8000, '\0');
  bad_filter[24001 * 7000] = 9;
  refuse(large_png(bad_filter));
  refuse(corpus("jpeg/claims"));
  refuse(corpus("png/bmp_claims"));
}

TEST_CASE("a picture that takes much memory is decoded where it is whole") {
  const TemporaryFolder folder;
  Image image(1600, 1600);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i / 1600);
  put_png(folder / "large.png", image);
  CHECK(load_image(folder / "large.png") == image);
}

TEST_CASE("bounded memory: lists of bytes") {
  const TemporaryFolder folder;
  const fs::path idx = folder / "images.gz", mat = folder / "train.mat", text = folder / "words.txt";
  const std::string header =
      std::string("\0\0\x08\x03", 4) + big_endian(200000) + big_endian(28) + big_endian(28);
  const gzFile file = gzopen(idx.c_str(), "wb1");
  gzwrite(file, header.data(), 16);
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 140; ++i) gzwrite(file, zeros.data(), 1 << 20);
  gzclose(file);
  check_bounded(idx, [&] { read_idx(idx, 3); });

  mat_files::Array x{"X", 9, {32, 32, 3, 50000}, 2, std::string(153600000, '\0')};
  std::string bytes = mat_files::header() + mat_files::compressed(x.bytes());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(mat, bytes);
  check_bounded(mat, [&] { read_mat(mat); });
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(mat, bytes);
  CHECK(read_mat(mat).at(0).data.size() == 153600000);  // the undamaged file is read

  put(text, std::string(10 << 20, '\n'));
  check_bounded(text, [&] { read_lines(text); });
}

TEST_CASE("bounded memory: arrays that claim, or inflate to, more than their file is worth") {
  const TemporaryFolder folder;
  const fs::path npz = folder / "x.npz", latents = folder / "train.safetensors";
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (150000000,), }\n";
  const std::string npy = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text +
                          std::string(150000000, '\0');
  const std::string whole = deflated_archive("x.npy", npy);
  std::string damaged = whole;
  damaged[whole.find("PK\x01\x02") + 16] ^= 1;  // the checksum
  put(npz, damaged);
  check_bounded(npz, [&] { read_numpy(npz); });
  put(npz, whole);
  CHECK(read_numpy(npz).at(0).second.elements() == 150000000);  // the undamaged file is read

  const std::string header =
      R"({"latents": {"dtype": "F32", "shape": [100000000, 4, 32, 32], "data_offsets": [0, 1638400000000]}})";
  const uint64_t size = header.size();
  put(latents, std::string(reinterpret_cast<const char*>(&size), 8) + header);
  check_bounded(latents, [&] { open_latents(latents, {}); });
}

TEST_CASE("bounded memory: documents of more keys and values than bytes can pay for") {
  const TemporaryFolder folder;
  const fs::path json = folder / "config.json", tensors = folder / "weights.safetensors";
  std::string lists = "[[]", keys = "{\"0\":0";
  for (int i = 0; i < 1 << 21; ++i) lists += ",[]";
  for (int i = 1; i < 1 << 19; ++i) keys += ",\"" + std::to_string(i) + "\":{}";
  for (const std::string& document : {lists + "]", keys + "}"}) {
    put(json, document);
    check_bounded(json, [&] { read_json(json); });
    uint64_t size = document.size();
    put(tensors, std::string(reinterpret_cast<const char*>(&size), 8) + document);
    check_bounded(tensors, [&] { read_safetensors(tensors); });
  }
}

}  // namespace tessera
