#include "data/fetch/unpack.h"

#include "data/fetch/library.h"
#include "engine/core/error.h"

#ifdef TESSERA_FETCH

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t most_entries = 4'000'000;

// What is used of libarchive, which is loaded for the first archive.
struct LibArchive {
  Library library{{"libarchive.so.13"}, "libarchive13"};
  decltype(&archive_read_new) make = library.function<decltype(archive_read_new)>("archive_read_new");
  decltype(&archive_read_free) free = library.function<decltype(archive_read_free)>("archive_read_free");
  decltype(&archive_read_support_filter_all) take_all_filters =
      library.function<decltype(archive_read_support_filter_all)>("archive_read_support_filter_all");
  decltype(&archive_read_support_format_tar) take_tar =
      library.function<decltype(archive_read_support_format_tar)>("archive_read_support_format_tar");
  decltype(&archive_read_support_format_zip) take_zip =
      library.function<decltype(archive_read_support_format_zip)>("archive_read_support_format_zip");
  decltype(&archive_read_open_filename) open =
      library.function<decltype(archive_read_open_filename)>("archive_read_open_filename");
  decltype(&archive_read_next_header) next_header =
      library.function<decltype(archive_read_next_header)>("archive_read_next_header");
  decltype(&archive_filter_bytes) filter_bytes =
      library.function<decltype(archive_filter_bytes)>("archive_filter_bytes");
  decltype(&archive_error_string) error_string =
      library.function<decltype(archive_error_string)>("archive_error_string");
  decltype(&archive_entry_pathname) pathname =
      library.function<decltype(archive_entry_pathname)>("archive_entry_pathname");
  decltype(&archive_entry_hardlink) hardlink =
      library.function<decltype(archive_entry_hardlink)>("archive_entry_hardlink");
  decltype(&archive_entry_filetype) filetype =
      library.function<decltype(archive_entry_filetype)>("archive_entry_filetype");
  decltype(&archive_read_data_block) data_block =
      library.function<decltype(archive_read_data_block)>("archive_read_data_block");
};

const LibArchive& lib() {
  static const LibArchive loaded;
  return loaded;
}

using Reader = std::unique_ptr<archive, decltype(LibArchive::free)>;

// A temporary folder; what is not moved out of it is removed at the end.
class Workplace {
 public:
  explicit Workplace(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);  // left by a run that was killed
    fs::create_directories(path_, error);
    check(!error, path_.string(), ": cannot be made: ", error.message());
  }
  ~Workplace() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Unpacker {
 public:
  Unpacker(const fs::path& archive, fs::path to, int64_t most_bytes, const ByteProgress& on_progress)
      : name_(archive.string()),
        to_(std::move(to)),
        room_(most_bytes),
        most_(most_bytes),
        on_progress_(on_progress) {
    lib().take_all_filters(reader_.get());
    lib().take_tar(reader_.get());
    lib().take_zip(reader_.get());
    size_ = static_cast<int64_t>(fs::file_size(archive));
    const int code = lib().open(reader_.get(), archive.c_str(), size_t{1} << 18);
    check(code == ARCHIVE_OK, name_, ": cannot be opened as an archive: ", reason());
  }

  void run() {
    archive_entry* entry = nullptr;
    int64_t count = 0;
    for (int code; (code = lib().next_header(reader_.get(), &entry)) != ARCHIVE_EOF;) {
      check(code == ARCHIVE_OK || code == ARCHIVE_WARN, name_, ": is damaged: ", reason());
      check(++count <= most_entries, name_, ": holds more than ", most_entries, " files");
      place(entry);
      if (on_progress_ && count % 64 == 0) on_progress_(lib().filter_bytes(reader_.get(), -1), size_);
    }
  }

 private:
  const char* reason() const {
    const char* text = lib().error_string(reader_.get());
    return text ? text : "no reason is given";
  }

  // The path of the entry in the temporary folder.
  fs::path inside(archive_entry* entry) const {
    const char* given = lib().pathname(entry);
    check(given != nullptr && *given != 0, name_, ": holds an entry without a name");
    const fs::path path(given);
    check(!path.is_absolute(), name_, ": holds the absolute path ", given, "; nothing was unpacked");
    fs::path to = to_;
    for (const fs::path& step : path) {
      check(step != "..", name_, ": holds a path that leads out of its folder, ", given,
            "; nothing was unpacked");
      if (step != "." && !step.empty()) to /= step;
    }
    return to;
  }

  void place(archive_entry* entry) {
    const fs::path path = inside(entry);
    const char* link = lib().hardlink(entry);
    const auto type = lib().filetype(entry);
    check(link == nullptr && (type == AE_IFREG || type == AE_IFDIR), name_, ": holds ",
          path.lexically_relative(to_).string(),
          ", which is a link or a device; files and folders are unpacked, nothing was");
    std::error_code error;
    fs::create_directories(type == AE_IFDIR ? path : path.parent_path(), error);
    check(!error, path.string(), ": its folder cannot be made: ", error.message());
    if (type == AE_IFREG) write(path);
  }

  void write(const fs::path& path) {
    std::ofstream out(path, std::ios::binary);
    const void* bytes = nullptr;
    size_t count = 0;
    int64_t at = 0, end = 0;
    for (int code; (code = lib().data_block(reader_.get(), &bytes, &count, &at)) != ARCHIVE_EOF;) {
      check(code == ARCHIVE_OK || code == ARCHIVE_WARN, name_, ": is damaged: ", reason());
      check(at >= end && at - end <= room_ && static_cast<int64_t>(count) <= room_ - (at - end), name_,
            ": unpacks to more than ", most_, " bytes; nothing was kept");
      room_ -= at - end + static_cast<int64_t>(count);
      out.seekp(at);
      out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
      end = at + static_cast<int64_t>(count);
    }
    out.close();
    check(!out.fail(), path.string(), ": cannot be written: ", std::strerror(errno));
  }

  std::string name_;
  fs::path to_;
  int64_t room_, most_, size_ = 0;
  const ByteProgress& on_progress_;
  Reader reader_{lib().make(), lib().free};
};

}  // namespace

void unpack(const fs::path& archive, const fs::path& dir, const std::string& folder, int64_t most_bytes,
            const ByteProgress& on_progress) {
  check(fs::exists(archive), archive.string(), ": no such file");
  const Workplace workplace(dir / ("." + folder + ".unpacking"));
  Unpacker(archive, workplace.path(), most_bytes, on_progress).run();
  check(fs::is_directory(workplace.path() / folder), archive.string(), ": holds no folder ", folder);
  std::error_code error;
  fs::rename(workplace.path() / folder, dir / folder, error);
  check(!error, (dir / folder).string(), ": cannot be put in place: ", error.message(),
        "; remove what is there, if anything is");
}

}  // namespace tessera

#else

namespace tessera {

void unpack(const std::filesystem::path& archive, const std::filesystem::path&, const std::string&, int64_t,
            const ByteProgress&) {
  fail(archive.string(),
       ": this build cannot unpack: install libcurl4-openssl-dev and libarchive-dev and build ",
       "again, or unpack it yourself");
}

}  // namespace tessera

#endif
