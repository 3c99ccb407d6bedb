#include "apps/ranks/shared_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tessera {

namespace {

// Bytes that several processes map.
class SharedBytes {
 public:
  SharedBytes(void* bytes, size_t count) : bytes_(static_cast<uint8_t*>(bytes)), count_(count) {}
  ~SharedBytes() { munmap(bytes_, count_); }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  uint8_t* data() const { return bytes_; }
  void end_writing() const { mprotect(bytes_, count_, PROT_READ); }

 private:
  uint8_t* bytes_;
  size_t count_;
};

// A file without a name, which is gone with the last process that has it.
class NamelessFile {
 public:
  // `filled`: all of its memory is needed; else a page takes memory when it is written.
  NamelessFile(size_t bytes, bool filled) : file_(memfd_create("tessera-pictures", MFD_CLOEXEC)) {
    const auto length = static_cast<off_t>(bytes);
    if (file_ < 0 || (filled ? posix_fallocate(file_, 0, length) : ftruncate(file_, length)) == 0) return;
    close(file_);
    file_ = -1;
  }
  ~NamelessFile() {
    if (file_ >= 0) close(file_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  bool is_there() const { return file_ >= 0; }
  /// Where this user's other processes open it.
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

 private:
  int file_;
};

std::unique_ptr<SharedBytes> map_file(const std::string& path, size_t count, bool writes) {
  const int file = open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat found {};
  if (fstat(file, &found) != 0 || found.st_size != static_cast<off_t>(count)) {
    close(file);
    return nullptr;
  }
  void* bytes = mmap(nullptr, count, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return bytes == MAP_FAILED ? nullptr : std::make_unique<SharedBytes>(bytes, count);
}

// Pictures of one size in shared memory. What else is known of them stays with each process.
class SharedSplit : public Split {
 public:
  SharedSplit(const Split& own, std::unique_ptr<SharedBytes> pixels, int height, int width)
      : pixels_(std::move(pixels)), height_(height), width_(width) {
    for (int64_t i = 0; i < own.size(); ++i) {
      labels_.push_back(static_cast<int32_t>(own.label(i)));
      sources_.push_back(own.source(i));
      names_.push_back(own.name(i));
    }
  }

  int64_t size() const override { return std::ssize(labels_); }
  int64_t label(int64_t i) const override { return labels_[static_cast<size_t>(i)]; }
  std::string source(int64_t i) const override { return sources_[static_cast<size_t>(i)]; }
  std::string name(int64_t i) const override { return names_[static_cast<size_t>(i)]; }
  void image(int64_t i, Image& out) const override {
    out.resize(height_, width_);
    const auto bytes = static_cast<size_t>(height_) * static_cast<size_t>(width_) * 3;
    const uint8_t* first = pixels_->data() + static_cast<size_t>(i) * bytes;
    std::memcpy(out.pixels.data(), first, bytes);
  }

 private:
  std::unique_ptr<SharedBytes> pixels_;
  int height_, width_;
  std::vector<int32_t> labels_;
  std::vector<std::string> sources_, names_;
};

// Calls f(image, its place in all pictures' bytes) for each one; whether f was true for all.
template <class F> bool each_picture(const Split& split, size_t bytes, F&& f) {
  Image image;
  for (int64_t i = 0; i < split.size(); ++i) {
    split.image(i, image);
    if (image.pixels.size() != bytes || !f(image, static_cast<size_t>(i) * bytes)) return false;
  }
  return true;
}

// The files that ranks of this machine offer, each by its path or "" for none.
std::vector<std::string> offered_here(Ranks& ranks, const std::string& path) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string machine = std::string(host) + " ";
  std::vector<std::string> here;
  for (const std::string& name : gather(ranks, path.empty() ? "" : machine + path))
    if (ranks.local_size() > 1 && name.starts_with(machine)) here.push_back(name.substr(machine.size()));
  return here;
}

size_t share_split(Ranks& ranks, std::shared_ptr<const Split>& split, const Shape& shape) {
  const auto height = static_cast<int>(shape[1]), width = static_cast<int>(shape[2]);
  const size_t each = 3 * static_cast<size_t>(height) * static_cast<size_t>(width),
               count = each * static_cast<size_t>(split->size());
  const bool makes = ranks.local_rank() == 0 && ranks.local_size() > 1;
  std::optional<NamelessFile> file;
  if (makes) file.emplace(count, true);
  std::unique_ptr<SharedBytes> pixels;
  if (file && file->is_there()) pixels = map_file(file->path(), count, true);
  if (pixels && !each_picture(*split, each, [&](const Image& image, size_t place) {
        std::memcpy(pixels->data() + place, image.pixels.data(), each);
        return true;
      }))
    pixels.reset();
  if (pixels) pixels->end_writing();
  // A machine's first rank names the memory; those of its host that find their own bytes there take it.
  for (const std::string& path : offered_here(ranks, pixels ? file->path() : "")) {
    if (pixels) break;
    pixels = map_file(path, count, false);
    if (pixels && !each_picture(*split, each, [&](const Image& image, size_t place) {
          return std::memcmp(pixels->data() + place, image.pixels.data(), each) == 0;
        }))
      pixels.reset();
  }
  gather(ranks, int64_t{0});  // until all have it
  if (!pixels) return 0;
  split = std::make_shared<SharedSplit>(*split, std::move(pixels), height, width);
  return count;
}

// One cache for the ranks of a machine, in memory that its first rank makes: whoever decodes a picture keeps
// it for all.
size_t share_cache(Ranks& ranks, const FileSplit& split) {
  const size_t count = split.cache().bytes();
  std::optional<NamelessFile> file;
  if (ranks.local_rank() == 0 && ranks.local_size() > 1) file.emplace(count, false);
  std::shared_ptr<SharedBytes> memory;
  for (const std::string& path : offered_here(ranks, file && file->is_there() ? file->path() : ""))
    if (!memory) memory = map_file(path, count, true);
  gather(ranks, int64_t{0});  // until all have it
  if (!memory) return 0;
  std::byte* const bytes = reinterpret_cast<std::byte*>(memory->data());
  split.cache().move_to(ImageCache::Memory(std::move(memory), bytes));
  return count;
}

bool in_memory(const Split& split) {
  return !split.has_masks() && dynamic_cast<const StoredSplit*>(&split.whole()) != nullptr;
}

}  // namespace

size_t share_data(Ranks& ranks, Dataset& dataset) {
  size_t shared = 0;
  for (std::shared_ptr<const Split>* split : {&dataset.train, &dataset.validation})
    if (in_memory(**split))
      shared += share_split(ranks, *split, dataset.image_shape);
    else if (const auto* files = dynamic_cast<const FileSplit*>(&(*split)->whole()))
      shared += share_cache(ranks, *files);
  return shared;
}

}  // namespace tessera
