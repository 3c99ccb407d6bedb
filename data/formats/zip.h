#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

// A file of a ZIP archive (PKWARE, APPNOTE.TXT), as its directory describes it.
struct ZipMember {
  std::string name;
  std::string_view stored;  // its bytes in the archive
  bool deflated = false;
  uint64_t size = 0;  // of its content
  uint32_t crc = 0;
};

// The directory of the archive `bytes`, ZIP64 too. Fails, naming `where`, for one that is cut short, offsets
// and sizes outside of the file, encrypted files and methods other than stored and deflated.
std::vector<ZipMember> read_zip(const std::string& where, std::string_view bytes);

// The content of a file: where it lies if it is stored, otherwise inflated into `held`. It is first inflated
// without being kept, so that a false claim costs no memory. Fails for another size or checksum than said.
std::string_view content_of(const std::string& where, const ZipMember& member, std::string& held);

// A file to be written: its name, and its content in two pieces.
struct ZipEntry {
  std::string name;
  std::pair<std::string, std::string_view> content;
};

// Writes an archive by write_file_atomically(), its files stored, with ZIP64's fields, and without dates.
void write_zip(const std::filesystem::path& path, std::span<const ZipEntry> entries);

}  // namespace tessera
