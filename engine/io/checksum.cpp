#include "engine/io/checksum.h"

// The header alone: no library to link, and its plain loops, which keep up with any disk.
#define XXH_VECTOR 0
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(new State) { XXH3_128bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::add(const void* bytes, size_t count) { XXH3_128bits_update(&state_->xxh3, bytes, count); }

std::string Checksum::text() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  constexpr char hex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += hex[byte >> 4];
    text += hex[byte & 15];
  }
  return text;
}

}  // namespace tessera
