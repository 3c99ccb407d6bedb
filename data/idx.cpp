#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "data/file.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int64_t max_bytes = int64_t{1} << 30;
constexpr int side = 28;

using GzFile = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

// zlib reads plain files through the same door. At most `wanted` bytes, in pieces, so that a size that is
// only claimed costs no memory.
std::vector<uint8_t> inflate(gzFile file, int64_t wanted, const fs::path& path) {
  constexpr int64_t piece = int64_t{1} << 20;
  std::vector<uint8_t> bytes;
  while (static_cast<int64_t>(bytes.size()) < wanted) {
    const size_t had = bytes.size(),
                 want = static_cast<size_t>(std::min(piece, wanted - static_cast<int64_t>(had)));
    bytes.resize(had + want);
    const int got = gzread(file, bytes.data() + had, static_cast<unsigned>(want));
    int code = Z_OK;
    const char* reason = gzerror(file, &code);
    check(got >= 0 && (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR), path.string(),
          ": cannot be read: ", reason);
    check(code != Z_BUF_ERROR, path.string(), ": the compressed data is cut short");
    bytes.resize(had + static_cast<size_t>(got));
    if (static_cast<size_t>(got) < want) break;
  }
  return bytes;
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
  const GzFile file(gzopen(path.c_str(), "rb"), &gzclose);
  check(file != nullptr, path.string(), ": cannot be opened");
  const std::vector<uint8_t> header = inflate(file.get(), 4 + 4 * rank, path);
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
  idx.bytes = inflate(file.get(), wanted, path);
  const int64_t held = static_cast<int64_t>(idx.bytes.size());
  check(held == wanted, path.string(), ": cut short: ", held, " bytes of ", wanted, " after the header");
  check(inflate(file.get(), 1, path).empty(), path.string(), ": goes on after the ", wanted,
        " bytes its header claims");
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
