#include "data/sets/image_folder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/formats/folder.h"
#include "data/formats/picture_name.h"
#include "engine/core/error.h"
#include "engine/core/random.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int max_depth = 8;  // of nested folders, because a link to a parent folder would recurse forever
constexpr int largest_default_size = 224;

using Items = std::vector<FileSplit::Item>;

// The files that are no images: their number, and the first one; and what a folder must not hold, so that all
// of it can be said at once.
struct LeftOut {
  int64_t count = 0;
  std::string first;
  std::vector<std::string> faults;

  void add(const fs::path& path) {
    if (count++ == 0) first = path.string();
  }
  void expect_no_faults() const {
    constexpr size_t most = 50;  // more lines are not read
    if (faults.empty()) return;
    if (faults.size() == 1) fail("folder: ", faults.front());
    std::string text;
    for (size_t i = 0; i < std::min(most, faults.size()); ++i) text += "\n" + faults[i];
    fail("folder: ", faults.size(), " things are in the way:", text, faults.size() > most ? "\n..." : "");
  }
};

void collect(const fs::path& folder, int32_t label, int depth, Items& items, LeftOut& left_out) {
  check(depth < max_depth, "folder: ", folder.string(), " lies more than ", max_depth, " folders deep");
  for (const fs::path& entry : list_folder(folder)) {
    if (is_folder(entry)) {
      collect(entry, label, depth + 1, items, left_out);
      continue;
    }
    const PictureName name = picture_name(entry);
    if (name == PictureName::foreign)
      left_out.faults.push_back(
          entry.string() + ": JPEG, PNG and BMP are read; convert it (mogrify -format png) or remove it");
    else if (name == PictureName::readable)
      items.push_back({entry, label});
    else
      left_out.add(entry);
  }
}

std::vector<std::string> class_folders(const fs::path& dir, LeftOut& left_out) {
  std::vector<std::string> names;
  for (const fs::path& entry : list_folder(dir)) {
    if (is_folder(entry)) {
      names.push_back(entry.filename().string());
      continue;
    }
    if (picture_name(entry) == PictureName::other)
      left_out.add(entry);
    else
      left_out.faults.push_back(entry.string() + " lies outside a class folder; pictures go to " +
                                (dir / "CLASS" / entry.filename()).string());
  }
  return names;
}

Items items_of(const fs::path& dir, const std::vector<std::string>& present,
               const std::vector<std::string>& classes, LeftOut& left_out) {
  Items items;
  for (const std::string& name : present) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      left_out.faults.push_back((dir / name).string() + " is a class that the training folder lacks" +
                                did_you_mean(name, classes));
      continue;
    }
    const size_t before = items.size();
    collect(dir / name, static_cast<int32_t>(found - classes.begin()), 0, items, left_out);
    if (items.size() == before)
      left_out.faults.push_back((dir / name).string() + " holds no JPEG, PNG or BMP file");
  }
  return items;
}

// Moves `fraction` of each class, at least one image and never all, out of `train`.
Items hold_out(Items& train, const fs::path& dir, const std::vector<std::string>& classes, double fraction,
               uint64_t seed, LeftOut& left_out) {
  check(fraction > 0 && fraction < 1, "folder: a validation fraction of ", fraction,
        "; it lies between 0 and 1");
  Items kept, held;
  for (auto begin = train.begin(); begin != train.end();) {
    const int32_t label = begin->label;
    const auto end =
        std::find_if(begin, train.end(), [label](const auto& item) { return item.label != label; });
    const int64_t count = end - begin;
    if (count < 2)
      left_out.faults.push_back((dir / classes[static_cast<size_t>(label)]).string() +
                                " has one picture; two are needed to hold one out for validation");
    const int64_t most = std::max<int64_t>(count - 1, 1),
                  take = std::clamp<int64_t>(std::llround(fraction * static_cast<double>(count)), 1, most);
    Random random = Random(seed).split(static_cast<uint64_t>(label));
    for (int64_t i = 0, taken = 0; i < count; ++i) {  // the probability that makes `take` in all
      const bool hold = random.below(count - i) < take - taken;
      (hold ? held : kept).push_back(std::move(begin[i]));
      taken += hold;
    }
    begin = end;
  }
  train = std::move(kept);
  return held;
}

// The short side of the first training image that can be read. Damaged ones before it are for others to
// report.
int default_size(const Items& train, std::vector<std::string>& notes) {
  std::string damage;
  for (const FileSplit::Item& item : train) try {
      const Image first = load_image(item.path);
      const int size = std::min({first.height, first.width, largest_default_size});
      notes.push_back("image size " + std::to_string(size) + ", after " + item.path.string());
      return size;
    } catch (const Error& error) {
      if (damage.empty()) damage = error.what();
    }
  fail(damage);
}

fs::path validation_folder(const fs::path& dir, std::vector<std::string>& notes) {
  for (const char* name : {"val", "valid", "validation", "test"})
    if (is_folder(dir / name)) {
      notes.push_back("validation images from " + (dir / name).string());
      return dir / name;
    }
  return {};
}

}  // namespace

Dataset open_image_folder(const fs::path& dir, const DatasetOptions& options) {
  check(is_folder(dir),
        "folder: ", dir.string().empty() ? "no data folder was given" : dir.string() + " is not a folder");
  Dataset dataset;
  LeftOut left_out;
  const bool has_train = is_folder(dir / "train");
  const fs::path train_dir = has_train ? dir / "train" : dir;
  dataset.name = "folder";
  dataset.class_names = class_folders(train_dir, left_out);
  check(dataset.classes() >= 2, "folder: ", train_dir.string(), " holds ", dataset.classes(),
        " class folders, at least 2 were expected: DIR/CLASS/*.jpg or DIR/train/CLASS/*.jpg");
  Items train = items_of(train_dir, dataset.class_names, dataset.class_names, left_out), validation;

  if (const fs::path folder = has_train ? validation_folder(dir, dataset.notes) : fs::path();
      !folder.empty()) {
    const std::vector<std::string> present = class_folders(folder, left_out);
    validation = items_of(folder, present, dataset.class_names, left_out);
    left_out.expect_no_faults();
    check(!validation.empty(), "folder: ", folder.string(), " holds no class folder");
    if (present.size() < dataset.class_names.size())
      dataset.notes.push_back("only " + std::to_string(present.size()) + " of " +
                              std::to_string(dataset.classes()) + " classes have validation images");
  } else {
    validation =
        hold_out(train, train_dir, dataset.class_names, options.validation_fraction, options.seed, left_out);
    left_out.expect_no_faults();
    dataset.notes.push_back(std::to_string(validation.size()) +
                            " images held out for validation, by class, with seed " +
                            std::to_string(options.seed));
  }
  if (left_out.count > 0)
    dataset.notes.push_back(std::to_string(left_out.count) + " files that are no pictures left out, first " +
                            left_out.first);

  const int size = options.image_size == 0 ? default_size(train, dataset.notes) : options.image_size;
  dataset.image_shape = {3, size, size};
  dataset.train = std::make_shared<FileSplit>(std::move(train), size, options.cache_bytes);
  dataset.validation =
      std::make_shared<FileSplit>(std::move(validation), size, options.cache_bytes, options.test_fit);
  return dataset;
}

DatasetEntry image_folder_entry() {
  return {
      .name = "folder", .open = open_image_folder, .takes_validation_fraction = true, .takes_test_fit = true};
}

}  // namespace tessera
