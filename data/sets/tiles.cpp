#include "data/sets/tiles.h"

#include <algorithm>

#include "data/formats/folder.h"
#include "data/formats/picture_name.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int usual_size = 64;

// Tiles of one split, one after another.
struct Tiles {
  std::vector<uint8_t> pixels;  // [count, size, size, 3]
  std::vector<int32_t> labels;

  // Cuts the tiles of `picture` whose columns are in [left, right), `step` pixels apart.
  void cut(const Image& picture, int left, int right, int size, int step, int32_t label) {
    for (int y = 0; y + size <= picture.height; y += step)
      for (int x = left; x + size <= right; x += step) {
        for (int row = 0; row < size; ++row) {
          const auto* const from = picture.at(y + row, x);
          pixels.insert(pixels.end(), from, from + size_t{3} * static_cast<size_t>(size));
        }
        labels.push_back(label);
      }
  }

  std::shared_ptr<const Split> split(int size, const char* name) {
    return std::make_shared<StoredSplit>(size, size, 3, std::move(pixels), std::move(labels),
                                         std::string("tiles, ") + name);
  }
};

bool is_picture(const fs::path& path) { return picture_name(path) == PictureName::readable; }

struct Class {
  std::string name;
  std::vector<fs::path> pictures;
};

// The classes of `dir`: a picture of its own, or a folder of pictures. Other files are left out.
std::vector<Class> classes_in(const fs::path& dir) {
  std::vector<Class> classes;
  for (const fs::path& entry : list_folder(dir)) {
    if (is_picture(entry)) classes.push_back({entry.stem().string(), {entry}});
    if (!is_folder(entry)) continue;
    Class& made = classes.emplace_back(Class{entry.filename().string(), {}});
    for (const fs::path& file : list_folder(entry))
      if (is_picture(file)) made.pictures.push_back(file);
    check(!made.pictures.empty(), "tiles: ", entry.string(), " holds no JPEG, PNG or BMP file");
  }
  std::sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) { return a.name < b.name; });
  for (size_t i = 1; i < classes.size(); ++i)
    check(classes[i].name != classes[i - 1].name, "tiles: two entries of ", dir.string(), " are named ",
          classes[i].name, "; each is a class");
  return classes;
}

}  // namespace

Dataset open_tiles(const fs::path& dir, const DatasetOptions& options) {
  check(is_folder(dir),
        "tiles: ", dir.string().empty() ? "no data folder was given" : dir.string() + " is not a folder");
  const std::vector<Class> classes = classes_in(dir);
  check(classes.size() >= 2, "tiles: ", dir.string(), " holds ", classes.size(),
        " classes, at least 2 were expected: DIR/CLASS.jpg or DIR/CLASS/*.jpg");
  const int size = options.image_size == 0 ? usual_size : options.image_size;
  Tiles train, validation;
  Dataset dataset;
  for (const Class& each : classes) {
    const auto label = static_cast<int32_t>(dataset.class_names.size());
    dataset.class_names.push_back(each.name);
    for (const fs::path& path : each.pictures) {
      const Image picture = load_image(path);
      check(picture.width >= 2 * size && picture.height >= size, "tiles: ", path.string(), " is ",
            picture.width, " x ", picture.height, " pixels; two tiles of ", size, " side by side are needed");
      const int border = picture.width - std::max(picture.width / 4, size);
      train.cut(picture, 0, border, size, std::max(size / 4, 1), label);
      validation.cut(picture, border, picture.width, size, std::max(size / 2, 1), label);
    }
  }
  dataset.name = "tiles";
  dataset.image_shape = {3, size, size};
  dataset.notes.emplace_back(
      "validation tiles are of the right quarter of every picture, training tiles of the rest");
  dataset.train = train.split(size, "train");
  dataset.validation = validation.split(size, "validation");
  return dataset;
}

DatasetEntry tiles_entry() {
  return {.name = "tiles",
          .open = open_tiles,
          .sizes = {.least = 8, .most = 512, .reason = "8 to 512 pixels, or 0 for tiles of 64"},
          .side = usual_size,
          .classes = 8};  // of data/closeups
}

}  // namespace tessera
