#include "data/sets/tiny_imagenet.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "data/formats/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* dataset_name = "tiny-imagenet";
constexpr size_t full_training_set = 100000;

std::vector<std::string> sorted_wnids(const fs::path& path) {
  std::vector<std::string> wnids = read_lines(path);
  std::sort(wnids.begin(), wnids.end());
  check(!wnids.empty() && !wnids.front().empty(), path.string(), ": an empty line where a wnid was expected");
  for (const std::string& wnid : wnids)
    check(is_plain_name(wnid), path.string(), ": wanted the names of class folders, got a path, '", wnid,
          "'");
  const auto twice = std::adjacent_find(wnids.begin(), wnids.end());
  check(twice == wnids.end(), path.string(), ": ", twice == wnids.end() ? "" : *twice, " stands there twice");
  return wnids;
}

// words.txt has lines such as "n01443537<tab>goldfish, Carassius auratus", for many more wnids than classes.
std::vector<std::string> class_names(const fs::path& path, const std::vector<std::string>& wnids) {
  std::unordered_map<std::string, std::string> words;
  for (const std::string& line : read_lines(path))
    if (const size_t tab = line.find('\t'); tab != std::string::npos)
      words[line.substr(0, tab)] = line.substr(tab + 1);
  std::vector<std::string> names;
  for (const std::string& wnid : wnids) {
    check(words.contains(wnid), path.string(), ": no line for ", wnid, ", which wnids.txt lists");
    names.push_back(words[wnid]);
  }
  return names;
}

int32_t class_of(const std::string& wnid, const std::vector<std::string>& wnids) {
  const auto found = std::lower_bound(wnids.begin(), wnids.end(), wnid);
  return found != wnids.end() && *found == wnid ? static_cast<int32_t>(found - wnids.begin()) : -1;
}

std::vector<FileSplit::Item> training_items(const fs::path& folder, const std::vector<std::string>& wnids) {
  for (const fs::path& entry : list_folder(folder))
    check(class_of(entry.filename().string(), wnids) >= 0, dataset_name, ": ", entry.string(),
          " is not a class of wnids.txt");
  std::vector<FileSplit::Item> items;
  for (size_t label = 0; label < wnids.size(); ++label) {
    const fs::path images = folder / wnids[label] / "images";
    const size_t before = items.size();
    for (const fs::path& path : list_folder(images)) {
      check(path.filename().string().starts_with(wnids[label] + "_"), dataset_name, ": ", path.string(),
            ": a training image of this class is called ", wnids[label], "_NUMBER.JPEG");
      items.push_back({path, static_cast<int32_t>(label)});
    }
    check(items.size() > before, dataset_name, ": ", images.string(), " holds no image");
  }
  return items;
}

// A line holds file, wnid and the object's box, separated by tabs.
std::vector<FileSplit::Item> validation_items(const fs::path& folder, const std::vector<std::string>& wnids) {
  const fs::path annotations = folder / "val_annotations.txt";
  check(is_file(annotations), dataset_name, ": ", annotations.string(),
        " is missing; if val was sorted into class folders, open it as 'folder'");
  std::vector<FileSplit::Item> items;
  std::unordered_set<std::string> seen;
  for (const std::string& line : read_lines(annotations)) {
    const size_t tab = line.find('\t'), next = line.find('\t', tab + 1);
    check(tab != std::string::npos && tab > 0, annotations.string(), ": line ", items.size() + 1, " '", line,
          "' is not FILE<tab>WNID...");
    const std::string file = line.substr(0, tab);
    check(is_plain_name(file), annotations.string(), ": line ", items.size() + 1,
          ": wanted a picture's name, got a path, '", file, "'");
    const std::string wnid = line.substr(tab + 1, next - tab - 1);
    const int32_t label = class_of(wnid, wnids);
    check(label >= 0, annotations.string(), ": line ", items.size() + 1, ": ", wnid,
          " is not a class of wnids.txt");
    check(seen.insert(file).second, annotations.string(), ": ", file, " stands there twice");
    items.push_back({folder / "images" / file, label});
  }
  size_t found = 0;
  for (const fs::path& path : list_folder(folder / "images")) {
    check(seen.contains(path.filename().string()), dataset_name, ": ", path.string(), " has no line in ",
          annotations.string());
    ++found;
  }
  if (found < items.size())
    for (const auto& item : items)
      check(is_file(item.path), dataset_name, ": ", item.path.string(), " is missing; ", annotations.string(),
            " lists it");
  check(!items.empty(), annotations.string(), ": lists no image");
  return items;
}

}  // namespace

Dataset open_tiny_imagenet(const fs::path& dir, const DatasetOptions& options) {
  const fs::path root = find_root(dataset_name, dir, "tiny-imagenet-200", "wnids.txt",
                                  "give the folder that tiny-imagenet-200.zip unpacks");
  const std::vector<std::string> wnids = sorted_wnids(root / "wnids.txt");
  const int size = options.image_size == 0 ? 64 : options.image_size;
  auto train = training_items(root / "train", wnids);
  auto validation = validation_items(root / "val", wnids);

  Dataset dataset;
  dataset.name = dataset_name;
  dataset.class_names = class_names(root / "words.txt", wnids);
  dataset.image_shape = {3, size, size};
  dataset.normalisation = {{0.4802f, 0.4481f, 0.3975f}, {0.2770f, 0.2691f, 0.2821f}};
  if (train.size() < full_training_set)
    dataset.notes.push_back("holds " + std::to_string(train.size()) + " of the 100000 training images");
  dataset.train = std::make_shared<FileSplit>(std::move(train), size, options.cache_bytes);
  dataset.validation =
      std::make_shared<FileSplit>(std::move(validation), size, options.cache_bytes, options.test_fit);
  return dataset;
}

DatasetEntry tiny_imagenet_entry() {
  const PublishedSet published{
      .files = {{"https://cs231n.stanford.edu/tiny-imagenet-200.zip", 248100043,
                 "90528d7ca1a48142e341f4ef8d21d0de", true,
                 "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821"}},
      .folder = "tiny-imagenet-200",
      .markers = {"wnids.txt", "words.txt", "train", "val/images", "val/val_annotations.txt"},
      .train = full_training_set,
      .validation = 10000,
      .classes = 200,
      .leaks = 7,
      .side = 64};
  return {.name = dataset_name, .open = open_tiny_imagenet, .takes_test_fit = true, .published = published};
}

}  // namespace tessera
