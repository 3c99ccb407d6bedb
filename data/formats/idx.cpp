#include "data/formats/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "data/formats/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t max_bytes = int64_t{1} << 30;

using GzFile = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

// Reads up to `count` bytes and returns how many. zlib's gzread takes plain files too.
size_t read_some(gzFile file, uint8_t* to, size_t count, const fs::path& path) {
  const int got = gzread(file, to, static_cast<unsigned>(count));
  int code = Z_OK;
  const char* reason = gzerror(file, &code);
  const auto at = [&] { return gztell(file); };
  check(code != Z_BUF_ERROR, path.string(), ": the compressed data is cut short, after ", at(),
        " bytes of content");
  check(got >= 0 && (code == Z_OK || code == Z_STREAM_END), path.string(), ": cannot be read after ", at(),
        " bytes of content: ", reason);
  return static_cast<size_t>(got);
}

GzFile open_file(const fs::path& path) {
  GzFile file(gzopen(path.c_str(), "rb"), &gzclose);
  check(file != nullptr, path.string(), ": cannot be opened");
  return file;
}

// Reads the content once to check that it is `header` + `wanted` bytes long, before memory is allocated for a
// size that the header merely claims.
void check_length(const fs::path& path, size_t header, int64_t wanted) {
  const GzFile file = open_file(path);
  std::vector<uint8_t> piece(size_t{1} << 16);
  int64_t held = -static_cast<int64_t>(header);
  for (size_t got; (got = read_some(file.get(), piece.data(), piece.size(), path)) > 0;) {
    held += static_cast<int64_t>(got);
    check(held <= wanted, path.string(), ": goes on after the ", wanted, " bytes its header claims");
  }
  check(held == wanted, path.string(), ": cut short: ", held, " bytes of ", wanted, " after the header");
}

}  // namespace

IdxFile read_idx(const fs::path& path, int rank) {
  check(is_file(path), path.string(), ": no such file");
  const GzFile file = open_file(path);
  std::vector<uint8_t> header(static_cast<size_t>(4 + 4 * rank));
  header.resize(read_some(file.get(), header.data(), header.size(), path));
  check(static_cast<int>(header.size()) == 4 + 4 * rank, path.string(), ": ", header.size(),
        " bytes are no IDX header, which takes ", 4 + 4 * rank);
  check(header[0] == 0 && header[1] == 0 && header[2] == 8 && header[3] == rank, path.string(),
        ": starts with bytes ", int{header[0]}, " ", int{header[1]}, " ", int{header[2]}, " ", int{header[3]},
        ", an IDX file of ", rank, " dimensions of bytes with 0 0 8 ", rank);
  IdxFile idx;
  int64_t wanted = 1;
  for (int d = 0; d < rank; ++d) {
    int64_t size = 0;
    for (int b = 0; b < 4; ++b) size = size << 8 | header[static_cast<size_t>(4 + 4 * d + b)];
    check(size == 0 || wanted <= max_bytes / size, path.string(), ": claims more than ", max_bytes, " bytes");
    wanted *= size;
    idx.sizes.push_back(size);
  }
  check_length(path, header.size(), wanted);
  idx.bytes.resize(static_cast<size_t>(wanted));
  const size_t got = read_some(file.get(), idx.bytes.data(), idx.bytes.size(), path);
  check(got == idx.bytes.size(), path.string(), ": changes while it is read");
  return idx;
}

}  // namespace tessera
