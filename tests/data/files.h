#pragma once

// Helpers for tests of readers: random content, files in a temporary folder, images of a split, refusals.

#include <doctest/doctest.h>

#include <algorithm>
#include <span>

#include "data/dataset.h"
#include "engine/core/error.h"
#include "engine/core/random.h"
#include "tests/error_of.h"
#include "tests/io/temporary_folder.h"

namespace tessera {

inline void put(const std::filesystem::path& path, std::span<const uint8_t> bytes) {
  std::filesystem::create_directories(path.parent_path());
  put(path, std::string(bytes.begin(), bytes.end()));
}

inline std::vector<uint8_t> random_bytes(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  return bytes;
}

inline Image random_image(int height, int width, uint64_t seed) {
  Image image(height, width);
  image.pixels = random_bytes(std::ssize(image.pixels), seed);
  return image;
}

inline void put_png(const std::filesystem::path& path, const Image& image) {
  std::filesystem::create_directories(path.parent_path());
  write_png(path, image);
}

inline Image picture(const Split& split, int64_t i) {
  Image image;
  split.image(i, image);
  return image;
}

// Checks that f() throws an Error whose message contains each of `parts`.
template <class F, class... Parts> void check_refused(F&& f, const Parts&... parts) {
  static_assert(sizeof...(Parts) > 0, "say what the message must contain");
  const std::string message = error_of(f);
  INFO("message: ", message);
  CHECK_FALSE(message.empty());
  for (const std::string& part : {std::string(parts)...}) CHECK(message.find(part) != std::string::npos);
}

}  // namespace tessera
