#ifdef TESSERA_JPEG

#include "data/formats/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>
// after cstdio, whose types they use
#include <jpeglib.h>
// after jpeglib.h
#include <jerror.h>

#include "data/formats/decoding.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

struct Failure {
  jpeg_error_mgr manager{};
  std::jmp_buf escape{};
  char text[JMSG_LENGTH_MAX] = {};
  size_t left = 0;  // bytes of the file not read yet
};

// The limit protects against damaged files with thousands of scans over a large image.
constexpr int most_scans = 100;

[[noreturn]] void leave(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->text);
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  failure->left = decoder->src ? decoder->src->bytes_in_buffer : 0;
  std::longjmp(failure->escape, 1);
}

// libjpeg warns of damaged data and invents the pixels; here that is an error. Oddities of headers are
// accepted.
void judge(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !harmless) leave(info);
}

void watch(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= most_scans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  leave(info);
}

// Results are returned, because a frame that longjmp leaves must not have objects with destructors.
enum class Outcome { done, four_components, failed };

Outcome read_header(jpeg_decompress_struct& info, Failure& failure, std::span<const uint8_t> bytes) {
  if (setjmp(failure.escape) != 0) return Outcome::failed;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  return info.num_components == 4 ? Outcome::four_components : Outcome::done;
}

// Writes rows `row_bytes` apart; with 0 each row overwrites the one before.
Outcome read_rows(jpeg_decompress_struct& info, Failure& failure, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(failure.escape) != 0) return Outcome::failed;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + size_t{info.output_scanline} * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return Outcome::done;
}

struct Decoder {
  jpeg_decompress_struct info{};
  Failure failure;
  jpeg_progress_mgr progress{};

  Decoder() {
    info.err = jpeg_std_error(&failure.manager);
    info.err->error_exit = leave;
    info.err->emit_message = judge;
    progress.progress_monitor = watch;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

// Decodes to `image`; if it is null, only verifies, with memory for a single row. Returns false for four
// components.
bool decode(std::span<const uint8_t> bytes, const std::string& path, Image* image) {
  Decoder decoder;
  const auto demand = [&](Outcome outcome) {
    check(outcome != Outcome::failed, path, ": cannot be decoded: ", decoder.failure.text, ", at byte ",
          bytes.size() - std::min(bytes.size(), decoder.failure.left), " of ", bytes.size());
    return outcome;
  };
  if (demand(read_header(decoder.info, decoder.failure, bytes)) == Outcome::four_components) return false;
  decoder.info.progress = &decoder.progress;
  const int64_t height = decoder.info.image_height, width = decoder.info.image_width;
  check_dimensions(height, width, path);
  check_jpeg_density(bytes, height, width, path);
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  if (!image) {
    if (jpeg_has_multiple_scans(&decoder.info) != 0)
      return true;  // libjpeg would hold the whole image anyway
    std::vector<uint8_t> row(row_bytes);
    demand(read_rows(decoder.info, decoder.failure, row.data(), 0));
    return true;
  }
  if (must_verify_first(bytes, height, width, 3)) decode(bytes, path, nullptr);
  image->resize(static_cast<int>(height), static_cast<int>(width));
  demand(read_rows(decoder.info, decoder.failure, image->pixels.data(), row_bytes));
  return true;
}

}  // namespace

bool decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, Image& image) {
  return decode(bytes, path, &image);
}

}  // namespace tessera

#endif
