#pragma once

// Archives and servers that the tests of fetching pack, publish and ask for.

#include <string>
#include <vector>

#include "data/fetch/download.h"
#include "data/fetch/sums.h"
#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

inline std::string md5_of(const std::string& text) {
  return hex(md5({{reinterpret_cast<const uint8_t*>(text.data()), text.size()}}));
}

inline std::string letters(size_t count) {
  std::string text(count, ' ');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

// True where this build has libcurl and libarchive; it reports that the test is skipped where not.
inline bool can_fetch() {
  const TemporaryFolder folder;
  const std::string message = error_of([&] { download("ftp://127.0.0.1/x", folder / "x", 0, {}); });
  if (message.find("this build") == std::string::npos) return true;
  MESSAGE("skipped: " << message);
  return false;
}

// A member of an old-style tar file, which needs only the first 157 bytes of the header and the link's name.
inline std::string tar_member(const std::string& name, const std::string& data, char type = '0',
                              const std::string& link = "") {
  std::string header(512, '\0');
  const auto set = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [](size_t value, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i > 0; --i, value /= 8) text[i - 1] = static_cast<char>('0' + value % 8);
    return text;
  };
  set(0, name);
  set(100, "0000644");
  set(124, octal(data.size(), 11));
  set(148, "        ");
  header[156] = type;
  set(157, link);
  size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  set(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + data + std::string((512 - data.size() % 512) % 512, '\0');
}

inline std::string tar_end() { return std::string(1024, '\0'); }

inline DatasetEntry set_of(const std::vector<PublishedFile>& files, const std::string& folder,
                           const std::vector<std::string>& markers) {
  return {.name = "test-set",
          .published = PublishedSet{.files = files, .folder = folder, .markers = markers}};
}

}  // namespace tessera
