#include "data/sets/imagenet.h"

#include <algorithm>
#include <unordered_map>

#include "data/formats/folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int usual_size = 224;
constexpr const char* solution = "LOC_val_solution.csv";

using Items = std::vector<FileSplit::Item>;

struct Place {
  std::string dataset;  // for messages
  fs::path root;
  std::vector<std::string> wnids;  // of the chosen classes, sorted
  bool all;                        // no class was left out by first_classes

  int32_t class_of(const std::string& wnid) const {
    const auto found = std::lower_bound(wnids.begin(), wnids.end(), wnid);
    return found != wnids.end() && *found == wnid ? static_cast<int32_t>(found - wnids.begin()) : -1;
  }
};

bool is_wnid(const std::string& name) {
  return name.size() == 9 && name[0] == 'n' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> training_wnids(const std::string& dataset, const fs::path& folder) {
  std::vector<std::string> wnids;
  for (const fs::path& entry : list_folder(folder)) {
    check(is_folder(entry) && is_wnid(entry.filename().string()), dataset, ": ", entry.string(),
          " is no class folder; they are called n and 8 digits",
          entry.extension() == ".tar" ? "; unpack each class's archive into one" : "");
    wnids.push_back(entry.filename().string());
  }
  check(wnids.size() >= 2, dataset, ": ", folder.string(), " holds ", wnids.size(), " class folders");
  return wnids;
}

// Keeps the first `count` classes. With 100 they must be ImageNet's own first 100, because other
// "ImageNet-100" lists are random choices.
void keep_first(std::vector<std::string>& wnids, int64_t count, const std::string& dataset) {
  check(std::ssize(wnids) >= count, dataset, ": the training folder holds ", wnids.size(), " classes, not ",
        count);
  wnids.resize(static_cast<size_t>(count));
  check(count != 100 || (wnids.front() == "n01440764" && wnids.back() == "n01855672"), dataset,
        ": the first 100 classes of ImageNet go from n01440764 to n01855672, here from ", wnids.front(),
        " to ", wnids.back(), "; open another choice of classes as 'folder'");
}

void append_folder(const fs::path& folder, int32_t label, Items& items, const std::string& dataset) {
  const size_t before = items.size();
  for (const fs::path& path : list_folder(folder)) {
    check(is_file(path), dataset, ": ", path.string(), ": pictures were expected here");
    items.push_back({path, label});
  }
  check(items.size() > before, dataset, ": ", folder.string(), " holds no picture");
}

Items training_items(const Place& place) {
  Items items;
  for (size_t label = 0; label < place.wnids.size(); ++label) {
    const size_t before = items.size();
    append_folder(place.root / "train" / place.wnids[label], static_cast<int32_t>(label), items,
                  place.dataset);
    for (size_t i = before; i < items.size(); ++i)
      check(items[i].path.filename().string().starts_with(place.wnids[label] + "_"), place.dataset, ": ",
            items[i].path.string(), ": a training image of this class is called ", place.wnids[label],
            "_NUMBER.JPEG");
  }
  return items;
}

// Maps a file's name without extension to the WNID of its class.
using Labels = std::unordered_map<std::string, std::string>;

// Reads the header "ImageId,PredictionString", then lines such as "ILSVRC2012_val_00048981,n03995372 85 1 499
// 272".
Labels read_solution(const fs::path& path) {
  Labels labels;
  for (const std::string& line : read_lines(path)) {
    const size_t comma = line.find(',');
    check(comma != std::string::npos, path.string(), ": line ", labels.size() + 1, " '", line,
          "' has no comma");
    const std::string wnid = line.substr(comma + 1, 9);
    if (is_wnid(wnid)) labels[line.substr(0, comma)] = wnid;
  }
  return labels;
}

Labels validation_labels(const Place& place) {
  for (const fs::path& folder : {place.root, place.root / "val", place.root.parent_path()})
    if (is_file(folder / solution)) return read_solution(folder / solution);
  fail(place.dataset, ": ", (place.root / "val").string(), " holds pictures of all classes, and ", solution,
       " is not beside it; put that there, or sort them into val/WNID. (The ids of the development kit's "
       "ground "
       "truth are not class numbers.)");
}

Items flat_validation(const Place& place, const std::vector<fs::path>& files) {
  const Labels labels = validation_labels(place);
  Items items;
  for (const fs::path& path : files) {
    const auto found = labels.find(path.stem().string());
    if (path.extension() == ".csv" || path.extension() == ".txt") continue;
    check(found != labels.end(), place.dataset, ": ", path.string(), " has no label");
    const int32_t label = place.class_of(found->second);
    check(label >= 0 || !place.all, place.dataset, ": ", path.string(), " is of class ", found->second,
          ", which the training folder lacks");
    if (label >= 0) items.push_back({path, label});
  }
  return items;
}

Items validation_items(const Place& place) {
  const std::vector<fs::path> entries = list_folder(place.root / "val");
  const bool sorted = std::any_of(entries.begin(), entries.end(), [](const auto& e) { return is_folder(e); });
  Items items;
  if (!sorted) items = flat_validation(place, entries);
  for (const fs::path& entry : sorted ? entries : std::vector<fs::path>()) {
    const std::string name = entry.filename().string();
    check(is_wnid(name), place.dataset, ": ", entry.string(), " is no class folder");
    const int32_t label = place.class_of(name);
    check(label >= 0 || !place.all, place.dataset, ": ", entry.string(),
          " is a class that the training folder lacks");
    if (label >= 0) append_folder(entry, label, items, place.dataset);
  }
  check(!items.empty(), place.dataset, ": ", (place.root / "val").string(),
        " holds no picture of these classes");
  return items;
}

// Reads lines such as "n01440764 tench, Tinca tinca", separated by a space or a tab.
std::vector<std::string> class_names(const Place& place) {
  std::unordered_map<std::string, std::string> words;
  for (const fs::path& folder : {place.root, place.root.parent_path()})
    for (const char* file : {"LOC_synset_mapping.txt", "synset_words.txt", "words.txt"})
      if (words.empty() && is_file(folder / file))
        for (const std::string& line : read_lines(folder / file))
          if (line.size() > 10 && is_wnid(line.substr(0, 9))) words[line.substr(0, 9)] = line.substr(10);
  std::vector<std::string> names;
  for (const std::string& wnid : place.wnids) names.push_back(words.contains(wnid) ? words[wnid] : wnid);
  return names;
}

}  // namespace

Dataset open_imagenet(const fs::path& dir, const DatasetOptions& options, int64_t first_classes) {
  Place place{.dataset = first_classes > 0 ? "imagenet-" + std::to_string(first_classes) : "imagenet",
              .root = {},
              .wnids = {},
              .all = first_classes == 0};
  place.root = find_root(place.dataset, dir, "imagenet", "train", "give the folder that holds train and val");
  check(is_folder(place.root / "val"), place.dataset, ": ", (place.root / "val").string(), " is missing");
  place.wnids = training_wnids(place.dataset, place.root / "train");
  if (first_classes > 0) keep_first(place.wnids, first_classes, place.dataset);
  auto train = training_items(place), validation = validation_items(place);

  Dataset dataset;
  dataset.name = place.dataset;
  dataset.class_names = class_names(place);
  const int size = options.image_size == 0 ? usual_size : options.image_size;
  dataset.image_shape = {3, size, size};
  if (!place.all) dataset.classes_of_whole = 1000;
  if (place.all && dataset.classes() != 1000)
    dataset.notes.push_back("holds " + std::to_string(dataset.classes()) + " of the 1000 classes");
  dataset.train = std::make_shared<FileSplit>(std::move(train), size, options.cache_bytes);
  dataset.validation =
      std::make_shared<FileSplit>(std::move(validation), size, options.cache_bytes, options.test_fit);
  return dataset;
}

namespace {

PublishedSet published_imagenet(int64_t train, int64_t validation, int64_t classes) {
  return {.markers = {"train", "val"},
          .train = train,
          .validation = validation,
          .classes = classes,
          .how_to_get =
              "make an account at https://image-net.org, which asks for a research or teaching purpose; "
              "download ILSVRC2012_img_train.tar (MD5 1d675b47d978889d74fa0da5fadfb00e) and "
              "ILSVRC2012_img_val.tar (MD5 29b22e2961454d5413ddabcf34fc5622); unpack each class's "
              "archive of the first to train/WNID, the second to val, and put LOC_val_solution.csv "
              "beside them"};
}

}  // namespace

DatasetEntry imagenet_entry() {
  return {.name = "imagenet",
          .open = [](const fs::path& dir,
                     const DatasetOptions& options) { return open_imagenet(dir, options, 0); },
          .takes_test_fit = true,
          .side = usual_size,
          .published = published_imagenet(1281167, 50000, 1000)};
}

DatasetEntry imagenet_100_entry() {
  return {.name = "imagenet-100",
          .open = [](const fs::path& dir,
                     const DatasetOptions& options) { return open_imagenet(dir, options, 100); },
          .takes_test_fit = true,
          .side = usual_size,
          .published = published_imagenet(0, 5000, 100)};
}

}  // namespace tessera
