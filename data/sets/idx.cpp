#include "data/sets/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "data/sets/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t max_bytes = int64_t{1} << 30;
constexpr int side = 28;

using GzFile = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

// The next bytes, at most `count`; zlib reads plain files through the same door.
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

// Fails unless `header` and `wanted` bytes make up the whole content: a size that is only claimed costs no
// memory.
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

// STEM or STEM.gz, also under the name STEM gets where an archiver wrote '.' for the second '-'.
fs::path find_file(const std::string& dataset, const fs::path& root, const std::string& stem) {
  std::string dotted = stem;
  dotted.at(stem.find("-idx")) = '.';
  for (const std::string& name : {stem, stem + ".gz", dotted, dotted + ".gz"})
    if (is_file(root / name)) return root / name;
  fail(dataset, ": ", (root / stem).string(), " is missing, and ", stem, ".gz too");
}

std::vector<uint8_t> padded(const std::vector<uint8_t>& pixels, int64_t count, int size) {
  const int margin = (size - side) / 2;
  std::vector<uint8_t> out(static_cast<size_t>(count * size * size), uint8_t{0});
  for (int64_t row = 0; row < count * side; ++row) {
    const int64_t y = row / side * size + margin + row % side;
    std::copy_n(pixels.begin() + row * side, side, out.begin() + y * size + margin);
  }
  return out;
}

std::shared_ptr<const Split> read_split(const std::string& dataset, const fs::path& root,
                                        const std::string& prefix, int size) {
  const fs::path image_path = find_file(dataset, root, prefix + "-images-idx3-ubyte");
  const fs::path label_path = find_file(dataset, root, prefix + "-labels-idx1-ubyte");
  const IdxFile images = read_idx(image_path, 3), labels = read_idx(label_path, 1);
  const int64_t count = images.sizes[0];
  check(images.sizes[1] == side && images.sizes[2] == side, dataset, ": ", image_path.string(),
        " holds images of ", images.sizes[1], " x ", images.sizes[2], "; 28 x 28 were expected");
  check(count > 0, dataset, ": ", image_path.string(), " holds no image");
  check(labels.sizes[0] == count, dataset, ": ", label_path.string(), " holds ", labels.sizes[0],
        " labels for the ", count, " images of ", image_path.string());
  for (int64_t i = 0; i < count; ++i)
    check(labels.bytes[static_cast<size_t>(i)] < 10, dataset, ": ", label_path.string(), ": label ", i,
          " is ", int{labels.bytes[static_cast<size_t>(i)]}, ", there are 10 classes");
  return std::make_shared<StoredSplit>(size, size, 1, padded(images.bytes, count, size),
                                       std::vector<int32_t>(labels.bytes.begin(), labels.bytes.end()),
                                       image_path.string());
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

Dataset open_idx(const std::string& name, const fs::path& dir, const DatasetOptions& options) {
  const bool fashion = name == "fashion-mnist";
  const int size = options.image_size == 0 ? side : options.image_size;
  check(size == side || size == 32, name, ": images of ", size, " x ", size,
        "; 28 (as stored) or 32 (padded) are made");
  check(is_folder(dir), name, ": ", dir.string(),
        " is not a folder; give the one that holds train-images-idx3-ubyte.gz");
  Dataset dataset;
  dataset.name = name;
  dataset.class_names =
      fashion ? std::vector<std::string>{"T-shirt/top", "trouser", "pullover", "dress", "coat",
                                         "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"}
              : std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  dataset.image_shape = {3, size, size};
  const float mean = fashion ? 0.2860f : 0.1307f, deviation = fashion ? 0.3530f : 0.3081f;
  dataset.normalisation = {{mean, mean, mean}, {deviation, deviation, deviation}};
  dataset.train = read_split(name, dir, "train", size);
  dataset.validation = read_split(name, dir, "t10k", size);
  return dataset;
}

}  // namespace tessera
