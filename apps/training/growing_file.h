#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tessera {

/// A text file of a run folder that grows by whole lines while the run trains. Messages name the file.
class GrowingFile {
 public:
  /// Opens the file, or makes it. Fails where it cannot be written.
  explicit GrowingFile(std::filesystem::path path);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string text() const;
  int64_t bytes() const;
  void cut(int64_t bytes) const;  ///< keeps the first `bytes`
  void add(const std::string& lines) const;
  void save() const;  ///< makes sure that all of it is on the disk

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace tessera
