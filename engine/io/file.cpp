#include "engine/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char *prefix = ".tessera-", *suffix = ".partial";  // name a file that is being written
constexpr size_t largest_call = size_t{1} << 30;                   // Linux moves at most 2 GB in one call

std::string reason(int error = errno) { return std::generic_category().message(error); }

// A new file beside its target; its destructor removes it unless replace_target() has renamed it.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& target) : target_(target) {
    static std::atomic<int> count{0};
    do {  // a short name of its own: the target's may have the longest length that is allowed
      path_ = folder() / (prefix + std::to_string(getpid()) + "-" + std::to_string(count++) + suffix);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) give_up("cannot make a file in its folder");
  }

  ~PartialFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!renamed_) unlink(path_.c_str());
  }

  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  // Gathers small pieces, so that a file of many tensors takes few system calls.
  void write(std::string_view bytes) {
    if (gathered_.size() + bytes.size() > most_gathered) flush();
    if (bytes.size() > most_gathered)
      write_through(bytes);
    else
      gathered_ += bytes;
  }

  void set_mode(mode_t mode) {
    if (fchmod(descriptor_, mode) != 0) give_up("cannot set its mode");
  }

  void replace_target() {
    flush();
    if (fsync(descriptor_) != 0) give_up("cannot sync it");
    const int closed = close(std::exchange(descriptor_, -1));
    if (closed != 0 && errno != EINTR) give_up("cannot close it");
    if (rename(path_.c_str(), target_.c_str()) != 0) give_up("cannot put it in place");
    renamed_ = true;
    sync_folder();
  }

 private:
  static constexpr size_t most_gathered = size_t{1} << 16;

  void flush() {
    write_through(gathered_);
    gathered_.clear();
  }

  void write_through(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_call));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) give_up("cannot write it");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  fs::path folder() const { return target_.has_parent_path() ? target_.parent_path() : fs::path("."); }

  // Makes the new name survive a loss of power. File systems that cannot do so say EINVAL.
  void sync_folder() const {
    const int folder_descriptor = open(folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_descriptor < 0) return;  // a folder without read permission cannot be synced
    const bool failed = fsync(folder_descriptor) != 0 && errno != EINVAL;
    const int error = errno;
    close(folder_descriptor);
    check(!failed, target_.string(), ": written, but its folder cannot be synced: ", reason(error));
  }

  [[noreturn]] void give_up(const char* what) const {
    fail(target_.string(), ": ", what, ": ", reason(), "; what was there before is untouched");
  }

  fs::path target_, path_;
  std::string gathered_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

// The mode of the regular file at `path`, or nothing if there is none. Fails if it must not be replaced.
std::optional<mode_t> mode_of_replaced(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;  // other errors show when the new file is made
  check(!S_ISDIR(status.st_mode), path.string(), ": is a folder, a file was to be written");
  check(S_ISREG(status.st_mode), path.string(), ": is not a regular file, so it cannot be replaced");
  const bool writable = access(path.c_str(), W_OK) == 0;
  check(writable, path.string(), ": is write-protected (", reason(), ")");
  return status.st_mode & 07777;
}

// The file that a link leads to is replaced, not the link.
fs::path replaced_at(const fs::path& path) {
  std::error_code none;
  fs::path target = fs::weakly_canonical(path, none);
  return none ? path : target;
}

}  // namespace

InputFile::InputFile(const fs::path& path) : path_(path) {
  descriptor_ =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // opening a pipe would wait for its writer
  check(descriptor_ >= 0, path.string(), ": cannot open it: ", reason());
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  close(descriptor_);
  fail(path.string(), S_ISDIR(status.st_mode) ? ": is a folder, wanted a file" : ": is not a regular file");
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(uint64_t at, void* to, size_t count) const {
  char* next = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t got = pread(descriptor_, next, std::min(count, largest_call), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, path_.string(), ": cannot read it: ", reason());
    check(got > 0, path_.string(), ": ends at byte ", at, ", ", count, " more were wanted");
    next += got;
    at += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

std::string read_text(const fs::path& path) {
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

std::vector<uint8_t> read_bytes(const fs::path& path, int64_t limit) {
  const InputFile file(path);
  check(file.size() <= static_cast<uint64_t>(limit), path.string(), ": ", file.size(),
        " bytes, more than the ", limit, " that are taken here");
  std::vector<uint8_t> bytes(file.size());
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

void write_file_atomically(const fs::path& path, std::span<const std::string_view> pieces) {
  const fs::path target = replaced_at(path);
  const std::optional<mode_t> mode = mode_of_replaced(target);
  PartialFile file(target);
  if (mode) file.set_mode(*mode);
  for (const std::string_view piece : pieces) file.write(piece);
  file.replace_target();
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  write_file_atomically(path, std::span(&bytes, 1));
}

void expect_writable(const fs::path& path) {
  const fs::path target = replaced_at(path);
  mode_of_replaced(target);
  const PartialFile made_and_removed(target);
}

void remove_partial_files(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    const pid_t writer = std::atoi(name.c_str() + std::string_view(prefix).size());
    const bool gone = writer > 0 && kill(writer, 0) != 0 && errno == ESRCH;
    if (gone) fs::remove(entry.path(), ignored);
  }
}

}  // namespace tessera
