#pragma once

// Files in, files out. Every error names the path and what the system said.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A regular file that is open for reading. Fails for a file that cannot be opened, a folder, pipe or device.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  ///< bytes, at the time it was opened

  /// Reads bytes [at, at + count) into `to`. Fails if the file ends before, as when it is cut meanwhile.
  void read(uint64_t at, void* to, size_t count) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  uint64_t size_ = 0;
};

/// All bytes of a regular file, as text or as bytes. read_bytes() fails for a file larger than `limit`,
/// before it takes memory.
std::string read_text(const std::filesystem::path& path);
std::vector<uint8_t> read_bytes(const std::filesystem::path& path, int64_t limit);

/// Makes `path` hold the pieces, one after another: writes a new file beside it, syncs it, renames it over
/// `path` and syncs the folder. A kill or a full disk at any moment leaves the whole old file, or the whole
/// new one. An existing file keeps its mode; a link is followed. Fails if the folder is missing or not
/// writable, or if `path` is write-protected or not a regular file.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Fails where write_file_atomically() would: to be asked before what is to be written takes long to make.
void expect_writable(const std::filesystem::path& path);

/// Removes the unfinished files that write_file_atomically() left in the folder in processes of this machine
/// that were killed.
void remove_partial_files(const std::filesystem::path& folder);

}  // namespace tessera
