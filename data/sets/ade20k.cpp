#include "data/sets/ade20k.h"

#include <algorithm>
#include <set>

#include "data/formats/folder.h"
#include "data/formats/resize.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* dataset_name = "ade20k";
constexpr int classes = 150, default_size = 512;
constexpr size_t full_training_set = 20210;

// Fails unless the bytes are a PNG with 8-bit grey samples. The 8 bytes of the signature are followed by the
// header chunk: its length, name, width and height, 4 bytes each, then the depth and the colour type.
void check_is_grey(const std::vector<uint8_t>& bytes, const std::string& path) {
  constexpr size_t depth = 24, colour = 25;
  constexpr uint8_t grey = 0, palette = 3;
  constexpr std::array<uint8_t, 4> signature{0x89, 'P', 'N', 'G'};
  check(bytes.size() > colour && std::equal(signature.begin(), signature.end(), bytes.begin()), path,
        ": no PNG file; an annotation is one of 8-bit grey");
  check(bytes[colour] == grey && bytes[depth] == 8, path, ": a PNG of ", int{bytes[depth]}, " bits a sample",
        bytes[colour] == palette ? " with a palette"
        : bytes[colour] == grey  ? ""
                                 : " in colours",
        "; an annotation is 8-bit grey, its values the classes");
}

// Images with annotations. All images have label 0, because the classes are those of pixels.
class AdeSplit : public FileSplit {
 public:
  AdeSplit(std::vector<Item> pictures, std::vector<fs::path> annotations, int image_size, size_t cache_bytes)
      : FileSplit(pictures, image_size, cache_bytes),
        pictures_(std::move(pictures)),
        annotations_(std::move(annotations)),
        image_size_(image_size) {}

  bool has_masks() const override { return true; }
  void mask(int64_t i, Image& out) const override {
    original_mask(i, out);
    out = fit_square_nearest(out, image_size_, annotations_[static_cast<size_t>(i)].string());
  }
  void original_mask(int64_t i, Image& out) const override {
    const auto at = static_cast<size_t>(i);
    const std::string path = annotations_[at].string(), picture = pictures_[at].path.string();
    const std::vector<uint8_t> bytes = read_bytes(annotations_[at], max_image_file_bytes);
    check_is_grey(bytes, path);
    out = decode_image(bytes, path);
    const auto [height, width] =
        image_dimensions(read_bytes(pictures_[at].path, max_image_file_bytes), picture);
    check(out.height == height && out.width == width, path, ": an annotation of ", out.width, " x ",
          out.height, " pixels, its picture ", picture, " has ", width, " x ", height);
    const uint8_t most = *std::max_element(out.pixels.begin(), out.pixels.end());
    check(most <= classes, path, ": a pixel of class ", int{most}, "; there are ", classes,
          ", and 0 for those that are not counted");
  }

 private:
  std::vector<Item> pictures_;
  std::vector<fs::path> annotations_;
  int image_size_;
};

std::shared_ptr<const AdeSplit> open_split(const fs::path& root, const char* name, int image_size,
                                           size_t cache_bytes) {
  const fs::path images = root / "images" / name, masks = root / "annotations" / name;
  std::vector<FileSplit::Item> pictures;
  std::vector<fs::path> annotations;
  std::set<std::string> wanted;
  for (const fs::path& path : list_folder(images)) {
    check(path.extension() == ".jpg", dataset_name, ": ", path.string(), ": a picture is called NAME.jpg");
    wanted.insert(path.stem().string() + ".png");
    pictures.push_back({path, 0});
    annotations.push_back(masks / (path.stem().string() + ".png"));
  }
  check(!pictures.empty(), dataset_name, ": ", images.string(), " holds no picture");
  std::set<std::string> found;
  for (const fs::path& path : list_folder(masks)) {
    const std::string file = path.filename().string();
    check(wanted.contains(file), dataset_name, ": ", path.string(), " has no picture in ", images.string());
    found.insert(file);
  }
  for (size_t i = 0; i < pictures.size(); ++i)
    check(found.contains(annotations[i].filename().string()), dataset_name, ": ", pictures[i].path.string(),
          " has no annotation; ", annotations[i].string(), " is missing");
  return std::make_shared<AdeSplit>(std::move(pictures), std::move(annotations), image_size, cache_bytes);
}

// Reads objectInfo150.txt: a header line, then lines of number, ratio of pixels, training images, validation
// images, stuff or not, and names, separated by tabs.
std::vector<std::string> class_names(const fs::path& path, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  if (!is_file(path)) {
    for (int k = 1; k <= classes; ++k) names.push_back("class " + std::to_string(k));
    notes.emplace_back("classes have numbers; objectInfo150.txt, which names them, is missing");
    return names;
  }
  for (const std::string& line : read_lines(path)) {
    if (line.starts_with("Idx")) continue;
    const size_t tab = line.rfind('\t');
    check(line.starts_with(std::to_string(names.size() + 1) + "\t"), path.string(), ": '", line,
          "' where class ", names.size() + 1, " was expected");
    names.push_back(line.substr(tab + 1));
  }
  check(names.size() == classes, path.string(), ": names ", names.size(), " classes, ", classes,
        " were expected");
  return names;
}

}  // namespace

Dataset open_ade20k(const fs::path& dir, const DatasetOptions& options) {
  const fs::path root = find_root(dataset_name, dir, "ADEChallengeData2016", "annotations",
                                  "give the folder that ADEChallengeData2016.zip unpacks");
  const int size = options.image_size == 0 ? default_size : options.image_size;
  Dataset dataset;
  dataset.name = dataset_name;
  dataset.class_names = class_names(root / "objectInfo150.txt", dataset.notes);
  dataset.image_shape = {3, size, size};
  dataset.train = open_split(root, "training", size, options.cache_bytes);
  dataset.validation = open_split(root, "validation", size, options.cache_bytes);
  if (const auto count = static_cast<size_t>(dataset.train->size()); count < full_training_set)
    dataset.notes.push_back("holds " + std::to_string(count) + " of the " +
                            std::to_string(full_training_set) + " training images");
  return dataset;
}

DatasetEntry ade20k_entry() {
  const PublishedSet published{
      .files = {{"http://data.csail.mit.edu/places/ADEchallenge/ADEChallengeData2016.zip", 0,
                 "7328b3957e407ddae1d3cbf487f149ef", true}},
      .folder = "ADEChallengeData2016",
      .markers = {"images/training", "images/validation", "annotations/training", "annotations/validation"},
      .train = full_training_set,
      .validation = 2000,
      .classes = classes};
  return {.name = dataset_name,
          .open = open_ade20k,
          .has_masks = true,
          .side = default_size,
          .published = published};
}

}  // namespace tessera
