#include "apps/training/event_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr double seconds_between_writes = 5;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Bitwise, for the reflected polynomial 0x82f63b78.
constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    table[byte] = crc;
  }
  return table;
}

template <class T> std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// ---- Protocol buffers: a key is field << 3 | wire type -------------------------------------------

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint32_t field, uint32_t wire_type) { return varint(field << 3 | wire_type); }

std::string number_field(uint32_t field, int64_t value) {
  return key(field, 0) + varint(static_cast<uint64_t>(value));
}

std::string double_field(uint32_t field, double value) {
  return key(field, 1) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string bytes_field(uint32_t field, std::string_view bytes) {
  return key(field, 2) + varint(bytes.size()) + std::string(bytes);
}

std::string float_field(uint32_t field, float value) {
  return key(field, 5) + little_endian(std::bit_cast<uint32_t>(value));
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string event(double wall_time, int64_t step) {
  return double_field(1, wall_time) + number_field(2, step);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(uint64_t{bytes.size()});
  return length + little_endian(masked_crc32c(length)) + std::string(bytes) +
         little_endian(masked_crc32c(bytes));
}

std::string version_event(double wall_time) {
  return double_field(1, wall_time) + bytes_field(3, "brain.Event:2");
}

// SessionLog: status = 1, whose START is 1.
std::string start_event(double wall_time, int64_t step) {
  return event(wall_time, step) + bytes_field(7, number_field(1, 1));
}

// Summary: value = 1; Value: tag = 1, simple_value = 2.
std::string scalars_event(double wall_time, int64_t step, Scalars scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += bytes_field(1, bytes_field(1, tag) + float_field(2, static_cast<float>(value)));
  return event(wall_time, step) + bytes_field(5, summary);
}

// Value: image = 4; Image: height = 1, width = 2, colorspace = 3, encoded_image_string = 4.
std::string image_event(double wall_time, int64_t step, const std::string& tag, int height, int width,
                        std::string_view png) {
  const std::string image =
      number_field(1, height) + number_field(2, width) + number_field(3, 3) + bytes_field(4, png);
  return event(wall_time, step) + bytes_field(5, bytes_field(1, bytes_field(1, tag) + bytes_field(4, image)));
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t step) {
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  path_ =
      folder / fmt::format("events.out.tfevents.{:010}.{}.{}", static_cast<int64_t>(now()), host, getpid());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  check(descriptor_ >= 0, path_.string(), ": cannot be opened: ", std::strerror(errno));
  add(version_event(now()));
  if (step > 0) add(start_event(now(), step + 1));
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const Error&) {  // the run's own files tell of a full disk
  }
  close(descriptor_);
}

void EventFile::add(const std::string& event) {
  waiting_ += tf_record(event);
  if (now() - written_ > seconds_between_writes) flush();
}

void EventFile::scalars(int64_t step, Scalars scalars) { add(scalars_event(now(), step, scalars)); }

void EventFile::image(int64_t step, const std::string& tag, int height, int width, std::string_view png) {
  add(image_event(now(), step, tag, height, width, png));
}

void EventFile::flush() {
  std::string_view left = waiting_;
  while (!left.empty()) {
    const ssize_t count = ::write(descriptor_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, path_.string(), ": cannot be written: ", std::strerror(errno));
    left.remove_prefix(static_cast<size_t>(count));
  }
  waiting_.clear();
  written_ = now();
}

}  // namespace tessera
