#include "data/sets/mnist.h"
#include "data/formats/idx.h"

#include <zlib.h>

#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

using Bytes = std::vector<uint8_t>;

Bytes idx(std::initializer_list<uint32_t> sizes, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(size >> shift & 255u));
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

void put_gz(const std::filesystem::path& path, const Bytes& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

const Bytes five_images = random_bytes(5 * 784, 1);
const Bytes five_labels = {5, 0, 4, 1, 9};

void put_all(const std::filesystem::path& root) {
  put(root / "train-images-idx3-ubyte", idx({5, 28, 28}, five_images));
  put(root / "train-labels-idx1-ubyte", idx({5}, five_labels));
  put_gz(root / "t10k-images-idx3-ubyte.gz", idx({5, 28, 28}, five_images));
  put_gz(root / "t10k-labels-idx1-ubyte.gz", idx({5}, five_labels));
}

}  // namespace

TEST_CASE("mnist: plain and gzip, grey to RGB") {
  const TemporaryFolder folder;
  put_all(folder.path());
  const Dataset dataset = open_dataset("mnist", folder.path());
  CHECK(dataset.image_shape == Shape{3, 28, 28});
  for (const auto& split : {dataset.train, dataset.validation}) {
    CHECK(split->size() == 5);
    CHECK(split->label(4) == 9);
    const Image image = picture(*split, 3);
    for (const size_t p : {size_t{0}, size_t{30}, size_t{783}})
      for (const size_t c : {0u, 1u, 2u}) CHECK(image.pixels[3 * p + c] == five_images[3 * 784 + p]);
  }
  CHECK(open_dataset("fashion-mnist", folder.path()).class_names[9] == "ankle boot");
}

TEST_CASE("mnist: 32 pixels are 28 in a black frame") {
  const TemporaryFolder folder;
  put_all(folder.path());
  DatasetOptions options;
  options.image_size = 32;
  const Dataset dataset = open_dataset("mnist", folder.path(), options);
  const Image image = picture(*dataset.train, 4);
  CHECK(dataset.image_shape == Shape{3, 32, 32});
  CHECK(image.at(2, 2)[0] == five_images[4 * 784]);
  CHECK(image.at(29, 29)[2] == five_images[5 * 784 - 1]);
  CHECK(image.at(1, 16)[0] == 0);
  CHECK(image.at(16, 30)[0] == 0);
  options.image_size = 64;
  check_refused([&] { open_dataset("mnist", folder.path(), options); }, "mnist", "64", "28", "32");
}

TEST_CASE("idx: what is wrong is named") {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  const auto read = [&](int rank) { return [&path, rank] { read_idx(path, rank); }; };
  check_refused(read(1), "no such file");
  put(path, Bytes{});
  check_refused(read(1), "no IDX header");
  put(path, idx({2}, {1, 2}));
  CHECK(read_idx(path, 1).bytes == Bytes{1, 2});
  check_refused(read(3), "no IDX header");
  put(path, Bytes{0, 0, 9, 1, 0, 0, 0, 0});
  check_refused(read(1), "0 0 9 1", "0 0 8 1");
  for (const Bytes& start : {Bytes{1, 0, 8, 1}, Bytes{0, 1, 8, 1}, Bytes{0, 0, 8, 2}}) {
    put(path, Bytes{start[0], start[1], start[2], start[3], 0, 0, 0, 0});
    check_refused(read(1), "starts with bytes ", "an IDX file of 1 dimensions of bytes with 0 0 8 1");
  }
  put(path, idx({0}, {}));
  CHECK((read_idx(path, 1).bytes.empty() && read_idx(path, 1).sizes == std::vector<int64_t>{0}));
  put(path, idx({5}, {1, 2}));
  check_refused(read(1), "cut short", "2 bytes of 5");
  put(path, idx({1}, {1, 2}));
  check_refused(read(1), "goes on after");
  put(path, idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {}));
  check_refused(read(3), "claims more than");
}

TEST_CASE("idx: a gzip file that is cut or damaged") {
  const TemporaryFolder folder;
  const auto path = folder / "a.gz";
  put_gz(path, idx({3920}, five_images));
  const std::string whole = bytes_of(path);
  CHECK(read_idx(path, 1).bytes == five_images);
  for (const size_t length : {size_t{5}, whole.size() / 2, whole.size() - 9, whole.size() - 1}) {
    CAPTURE(length);
    put(path, whole.substr(0, length));
    check_refused([&] { read_idx(path, 1); }, "a.gz");
  }
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // its checksum
  put(path, damaged);
  check_refused([&] { read_idx(path, 1); }, "a.gz", "cannot be read");
}

TEST_CASE("mnist: files that do not belong together") {
  const TemporaryFolder folder;
  const auto open = [&] { open_dataset("mnist", folder.path()); };
  check_refused(open, "train-images-idx3-ubyte", "missing");
  put_all(folder.path());
  put(folder / "train-labels-idx1-ubyte", idx({4}, {1, 2, 3, 4}));
  check_refused(open, "4 labels", "5 images");
  put(folder / "train-labels-idx1-ubyte", idx({5}, {1, 2, 10, 4, 5}));
  check_refused(open, "train-labels-idx1-ubyte", "label 2 is 10");
  put(folder / "train-images-idx3-ubyte", idx({5, 28, 14}, Bytes(5 * 28 * 14, 0)));
  check_refused(open, "train-images-idx3-ubyte", "28 x 14");
  put(folder / "train-images-idx3-ubyte", idx({5, 14, 28}, Bytes(5 * 28 * 14, 0)));
  check_refused(open, "train-images-idx3-ubyte", "14 x 28");
  put(folder / "train-images-idx3-ubyte", idx({0, 28, 28}, {}));
  check_refused(open, "train-images-idx3-ubyte", "holds no image");
  std::filesystem::rename(folder / "train-images-idx3-ubyte", folder / "train-images.idx3-ubyte");
  check_refused(open, "train-images.idx3-ubyte", "holds no image");  // as some archives name it
  std::filesystem::remove(folder / "train-images.idx3-ubyte");
  put_gz(folder / "train-images.idx3-ubyte.gz", idx({0, 28, 28}, {}));
  check_refused(open, "train-images.idx3-ubyte.gz", "holds no image");
  check_refused([&] { open_dataset("mnist", folder / "none"); }, "none is not a folder; give the one");
}

}  // namespace tessera
