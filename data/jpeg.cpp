#ifdef TESSERA_JPEG

#include "data/jpeg.h"

#include <csetjmp>
#include <cstdio>
// after cstdio, whose types they use
#include <jpeglib.h>
// after jpeglib.h
#include <jerror.h>

#include "engine/core/error.h"

namespace tessera {

namespace {

struct Failure {
  jpeg_error_mgr manager{};
  std::jmp_buf escape{};
  char text[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->text);
  std::longjmp(failure->escape, 1);
}

// libjpeg warns of damaged data and makes up the pixels. Here that is an error; oddities of headers are not.
void judge(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
  if (level < 0 && !harmless) leave(info);
}

// The frame that a longjmp may leave holds no object with a destructor.
enum class Outcome { done, four_components, failed };

Outcome read_header(jpeg_decompress_struct& info, Failure& failure, std::span<const uint8_t> bytes) {
  if (setjmp(failure.escape) != 0) return Outcome::failed;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  return info.num_components == 4 ? Outcome::four_components : Outcome::done;
}

Outcome read_rows(jpeg_decompress_struct& info, Failure& failure, uint8_t* pixels) {
  if (setjmp(failure.escape) != 0) return Outcome::failed;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + size_t{info.output_scanline} * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return Outcome::done;
}

struct Decoder {
  jpeg_decompress_struct info{};
  Failure failure;

  Decoder() {
    info.err = jpeg_std_error(&failure.manager);
    info.err->error_exit = leave;
    info.err->emit_message = judge;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

}  // namespace

bool decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, Image& image) {
  Decoder decoder;
  const Outcome header = read_header(decoder.info, decoder.failure, bytes);
  check(header != Outcome::failed, path, ": cannot be decoded: ", decoder.failure.text);
  if (header == Outcome::four_components) return false;
  check_dimensions(decoder.info.image_height, decoder.info.image_width, path);
  image.resize(static_cast<int>(decoder.info.image_height), static_cast<int>(decoder.info.image_width));
  check(read_rows(decoder.info, decoder.failure, image.pixels.data()) == Outcome::done, path,
        ": cannot be decoded: ", decoder.failure.text);
  return true;
}

}  // namespace tessera

#endif
