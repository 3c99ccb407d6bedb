#include "apps/training/event_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/io/protobuf.h"

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

// Event: wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5, session_log = 7.
ProtoMessage event(double wall_time, int64_t step) {
  ProtoMessage message;
  message.real64(1, wall_time).number(2, step);
  return message;
}

// Summary: value = 1. Each Value begins with its tag = 1.
ProtoMessage value_of(const std::string& tag) {
  ProtoMessage value;
  value.text(1, tag);
  return value;
}

std::string event_of(double wall_time, int64_t step, const ProtoMessage& summary) {
  return event(wall_time, step).message(5, summary).bytes();
}

// The keys below one another with dots between them, as google.protobuf.Value: number = 2, string = 3, bool =
// 4; in a map<string, Value>: key = 1, value = 2.
void add_settings(ProtoMessage& to, const std::string& name, const Json& value) {
  if (value.is_object()) {
    for (const auto& [key, below] : value.items())
      add_settings(to, name.empty() ? key : name + "." + key, below);
    return;
  }
  ProtoMessage its;
  if (value.is_boolean())
    its.number(4, value.get<bool>() ? 1 : 0);
  else if (value.is_number())
    its.real64(2, value.get<double>());
  else
    its.text(3, value.is_string() ? value.get<std::string>() : value.dump());
  to.message(1, ProtoMessage().text(1, name).message(2, its));
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
  return ProtoMessage().real64(1, wall_time).text(3, "brain.Event:2").bytes();
}

// SessionLog: status = 1, whose START is 1.
std::string start_event(double wall_time, int64_t step) {
  return event(wall_time, step).message(7, ProtoMessage().number(1, 1)).bytes();
}

// Value: simple_value = 2.
std::string scalars_event(double wall_time, int64_t step, Scalars scalars) {
  ProtoMessage summary;
  for (const auto& [tag, value] : scalars)
    summary.message(1, value_of(tag).real(2, static_cast<float>(value)));
  return event_of(wall_time, step, summary);
}

// Value: image = 4; Image: height = 1, width = 2, colorspace = 3, encoded_image_string = 4.
std::string image_event(double wall_time, int64_t step, const std::string& tag, int height, int width,
                        std::string_view png) {
  const ProtoMessage image = ProtoMessage().number(1, height).number(2, width).number(3, 3).text(4, png);
  return event_of(wall_time, step, ProtoMessage().message(1, value_of(tag).message(4, image)));
}

// Value: histo = 5; HistogramProto: min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6,
// bucket = 7.
std::string histogram_event(double wall_time, int64_t step, std::span<const Histogram> histograms) {
  ProtoMessage summary;
  for (const Histogram& h : histograms) {
    ProtoMessage histo;
    histo.real64(1, h.lowest).real64(2, h.highest).real64(3, h.count).real64(4, h.sum).real64(5, h.squares);
    histo.packed(6, h.limits).packed(7, h.counts);
    summary.message(1, value_of(h.tag).message(5, histo));
  }
  return event_of(wall_time, step, summary);
}

std::string graph_event(double wall_time, std::string_view graph) {
  return event(wall_time, 0).text(4, graph).bytes();
}

// Value: metadata = 9; SummaryMetadata: plugin_data = 1; PluginData: plugin_name = 1, content = 2. The
// content is an HParamsPluginData: session_start_info = 3; SessionStartInfo: hparams = 1.
std::string settings_event(double wall_time, const Json& settings) {
  ProtoMessage start;
  add_settings(start, "", settings);
  const ProtoMessage data =
      ProtoMessage().text(1, "hparams").text(2, ProtoMessage().message(3, start).bytes());
  const ProtoMessage value =
      value_of("_hparams_/session_start_info").message(9, ProtoMessage().message(1, data));
  return event_of(wall_time, 0, ProtoMessage().message(1, value));
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

void EventFile::histograms(int64_t step, std::span<const Histogram> histograms) {
  add(histogram_event(now(), step, histograms));
}

void EventFile::graph(std::string_view graph) { add(graph_event(now(), graph)); }

void EventFile::settings(const Json& settings) { add(settings_event(now(), settings)); }

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
