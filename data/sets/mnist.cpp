#include "data/sets/mnist.h"

#include <algorithm>

#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int side = 28;

// STEM or STEM.gz. Some archives of the files name them with '.' in place of the second '-'.
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

Dataset open_mnist(const std::string& name, const fs::path& dir, const DatasetOptions& options) {
  const bool fashion = name == "fashion-mnist";
  const int size = options.image_size == 0 ? side : options.image_size;
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

ImageSizes stored_or_padded() {
  return {.only = {side, 32}, .reason = "28 (as stored) or 32 (padded) are made"};
}

// The urls of `files` are relative to `base`.
PublishedSet published_files(const std::string& base, const std::array<PublishedFile, 4>& files) {
  PublishedSet set{.train = 60000, .validation = 10000, .classes = 10, .side = side};
  for (PublishedFile file : files) {
    set.markers.push_back(file.url);
    set.sums.push_back({file.url, file.md5});
    file.url = base + file.url;
    set.files.push_back(file);
  }
  return set;
}

}  // namespace

DatasetEntry mnist_entry() {
  return {.name = "mnist",
          .open = [](const fs::path& dir,
                     const DatasetOptions& options) { return open_mnist("mnist", dir, options); },
          .sizes = stored_or_padded(),
          .published =
              published_files("https://ossci-datasets.s3.amazonaws.com/mnist/",
                              {{{"train-images-idx3-ubyte.gz", 9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                                 false, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                                {"train-labels-idx1-ubyte.gz", 28881, "d53e105ee54ea40749a09fcbcd1e9432",
                                 false, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                                {"t10k-images-idx3-ubyte.gz", 1648877, "9fb629c4189551a2d022fa330f9573f3",
                                 false, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                                {"t10k-labels-idx1-ubyte.gz", 4542, "ec29112dd5afa0611ce80d1b7f02629c", false,
                                 "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}})};
}

DatasetEntry fashion_mnist_entry() {
  return {.name = "fashion-mnist",
          .open = [](const fs::path& dir,
                     const DatasetOptions& options) { return open_mnist("fashion-mnist", dir, options); },
          .sizes = stored_or_padded(),
          .published =
              published_files("https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
                              {{{"train-images-idx3-ubyte.gz", 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                                 false, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                                {"train-labels-idx1-ubyte.gz", 29515, "25c81989df183df01b3e8a0aad5dffbe",
                                 false, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                                {"t10k-images-idx3-ubyte.gz", 4422102, "bef4ecab320f06d8554ea6380940ec79",
                                 false, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                                {"t10k-labels-idx1-ubyte.gz", 5148, "bb300cfdad3c16e7a12a480ee83cd310", false,
                                 "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}})};
}

}  // namespace tessera
