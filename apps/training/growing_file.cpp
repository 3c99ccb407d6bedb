#include "apps/training/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

GrowingFile::GrowingFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  check(descriptor_ >= 0, path_.string(), ": cannot be opened: ", std::strerror(errno));
}

GrowingFile::~GrowingFile() { close(descriptor_); }

std::string GrowingFile::text() const { return read_text(path_); }

int64_t GrowingFile::bytes() const { return lseek(descriptor_, 0, SEEK_END); }

void GrowingFile::cut(int64_t bytes) const {
  const bool done = ftruncate(descriptor_, bytes) == 0;  // before errno is read
  check(done, path_.string(), ": cannot be cut: ", std::strerror(errno));
}

void GrowingFile::add(const std::string& lines) const {
  for (std::string_view left = lines; !left.empty();) {
    const ssize_t count = ::write(descriptor_, left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, path_.string(), ": cannot be written: ", std::strerror(errno));
    left.remove_prefix(static_cast<size_t>(count));
  }
}

void GrowingFile::save() const {
  const bool done = fsync(descriptor_) == 0;
  check(done, path_.string(), ": cannot be written: ", std::strerror(errno));
}

}  // namespace tessera
