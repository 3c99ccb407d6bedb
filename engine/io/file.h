#pragma once

// Files in, files out. Every error names the path and what the system said.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// A regular file open for reading; folders, pipes and devices are refused.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened

  // Bytes [at, at + count) into `to`. Fails if the file is shorter, as one that is cut while it is read.
  void read(uint64_t at, void* to, size_t count) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// All bytes of a regular file.
std::string read_text(const std::filesystem::path& path);
// The same where no more than `limit` bytes are to be taken into memory; fails for a larger file.
std::vector<uint8_t> read_bytes(const std::filesystem::path& path, int64_t limit);

// Makes `path` hold the pieces, one after another: written to a new file beside it, synced, renamed over it,
// the folder synced. A kill or a full disk at any moment leaves the old file whole, or the new one. A file
// that is there keeps its mode; a link is followed. Fails if the folder is missing or not writable, and if
// `path` is write-protected or not a regular file.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Removes what processes of this machine that were killed while they wrote left beside their targets.
void remove_partial_files(const std::filesystem::path& folder);

}  // namespace tessera
