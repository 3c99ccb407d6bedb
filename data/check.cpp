#include "data/check.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "data/fetch/sums.h"
#include "data/formats/folder.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/per_thread.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr size_t most_examples = 10;
constexpr std::array<const char*, 2> split_names{"train", "validation"};

struct Seen {
  Md5Digest pixels{}, file{};
  int height = 0, width = 0;  // 0: cannot be decoded
};

// The images of both splits in one numbering, training images first.
class Pictures {
 public:
  explicit Pictures(const Dataset& dataset) : dataset_(dataset), seen_(static_cast<size_t>(size())) {}

  int64_t size() const { return dataset_.train->size() + dataset_.validation->size(); }
  bool in_train(int64_t i) const { return i < dataset_.train->size(); }
  const Split& split(int64_t i) const { return in_train(i) ? *dataset_.train : *dataset_.validation; }
  int64_t number(int64_t i) const { return in_train(i) ? i : i - dataset_.train->size(); }
  int64_t label(int64_t i) const { return split(i).label(number(i)); }
  std::string source(int64_t i) const { return split(i).source(number(i)); }
  bool are_files() const { return dynamic_cast<const FileSplit*>(dataset_.train.get()) != nullptr; }
  const Seen& operator[](int64_t i) const { return seen_[static_cast<size_t>(i)]; }

  // Decodes all images in parallel. Returns the messages of those that fail, in their order.
  std::vector<std::string> look(const std::function<void(double)>& on_progress) {
    std::vector<std::string> failures(seen_.size());
    std::atomic<int64_t> done = 0;
    std::mutex telling;
    parallel_for(size(), 64, [&](int64_t begin, int64_t end) {
      Image image;
      for (int64_t i = begin; i < end; ++i) try {
          look_at(i, image);
        } catch (const Error& error) {
          failures[static_cast<size_t>(i)] = error.what();
        }
      done += end - begin;
      if (const std::unique_lock lock(telling, std::try_to_lock); on_progress && lock)
        on_progress(static_cast<double>(done) / static_cast<double>(size()));
    });
    std::erase(failures, std::string());
    return failures;
  }

 private:
  void look_at(int64_t i, Image& image) {
    Seen& seen = seen_[static_cast<size_t>(i)];
    if (split(i).has_latents()) return look_at_latent(i);
    if (split(i).has_masks()) split(i).mask(number(i), image);
    if (are_files()) {  // as stored, before it is fitted to the data set's size
      const std::string path = source(i);
      const std::vector<uint8_t> bytes = read_bytes(path, max_image_file_bytes);
      seen.file = md5({bytes});
      image = decode_image(bytes, path);
    } else {
      split(i).image(number(i), image);
    }
    const std::array<int, 2> size{image.height, image.width};
    // The size is part of the sum, because 2 x 8 and 4 x 4 equal pixels are different images.
    seen.pixels = md5({{reinterpret_cast<const uint8_t*>(size.data()), sizeof size}, image.pixels});
    seen.height = image.height;
    seen.width = image.width;
  }

  // Equal latents, or equal distributions, are equal under the same draws.
  void look_at_latent(int64_t i) {
    const Shape& shape = dataset_.image_shape;
    static const PerThread<std::vector<float>> of_all;
    std::vector<float>& numbers = of_all.of_this_thread();
    numbers.resize(static_cast<size_t>(shape.elements()));
    split(i).latent(number(i), Random(0), numbers.data());
    Seen& seen = seen_[static_cast<size_t>(i)];
    seen.pixels = md5({{reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * sizeof(float)}});
    seen.height = static_cast<int>(shape[1]);
    seen.width = static_cast<int>(shape[2]);
  }

  const Dataset& dataset_;
  std::vector<Seen> seen_;
};

void add(std::vector<Finding>& findings, Finding finding) {
  if (finding.count > 0) findings.push_back(std::move(finding));
}

void note(Finding& finding, const std::string& example) {
  ++finding.count;
  if (finding.examples.size() < most_examples) finding.examples.push_back(example);
}

std::string plural(int64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Groups of images with equal pixels, in the order of their first members.
std::vector<std::vector<int64_t>> groups(const Pictures& pictures) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < pictures.size(); ++i)
    if (pictures[i].height > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return pictures[a].pixels < pictures[b].pixels; });
  std::vector<std::vector<int64_t>> found;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end = std::find_if(begin, order.end(),
                                  [&](int64_t i) { return pictures[i].pixels != pictures[*begin].pixels; });
    if (end - begin > 1) found.emplace_back(begin, end);
    begin = end;
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool same_file(const Pictures& pictures, int64_t a, int64_t b) {
  return pictures.are_files() && pictures[a].file == pictures[b].file;
}

std::string pair_text(const Pictures& pictures, int64_t a, int64_t b) {
  return pictures.source(a) + " = " + pictures.source(b);
}

// Equal images in one split. All but the first of a group and split count.
Finding copies_within(const Pictures& pictures, const std::vector<std::vector<int64_t>>& same) {
  Finding finding{.kind = "duplicates", .message = "", .count = 0, .examples = {}, .wrong = false};
  for (const auto& group : same)
    for (size_t i = 1; i < group.size(); ++i)
      if (const int64_t a = group[i - 1], b = group[i]; pictures.in_train(a) == pictures.in_train(b)) {
        note(finding, pair_text(pictures, a, b));
        finding.same_files += same_file(pictures, a, b);
      }
  finding.message = plural(finding.count, "picture") + " that the same split holds before";
  return finding;
}

// Validation images that are in the training split too. They are wrong beyond the number `published`.
Finding leaks(const Pictures& pictures, const std::vector<std::vector<int64_t>>& same, int64_t published) {
  Finding finding{.kind = "leakage", .message = "", .count = 0, .examples = {}, .wrong = true};
  for (const auto& group : same)  // sorted, so training images come first
    for (const int64_t i : group)
      if (pictures.in_train(group.front()) && !pictures.in_train(i)) {
        note(finding, pair_text(pictures, group.front(), i));
        finding.same_files += same_file(pictures, group.front(), i);
      }
  finding.wrong = finding.count > published;
  finding.message = plural(finding.count, "validation picture") + " that the training split holds too";
  if (published > 0) finding.message += ", " + std::to_string(published) + " as published";
  return finding;
}

void find_contradictions(const Pictures& pictures, const std::vector<std::vector<int64_t>>& same,
                         const Dataset& dataset, std::vector<Finding>& findings) {
  Finding finding{.kind = "contradicting labels", .message = "", .count = 0, .examples = {}, .wrong = false};
  for (const auto& group : same)
    for (const int64_t i : group)
      if (const int64_t a = pictures.label(group.front()), b = pictures.label(i); a != b) {
        note(finding, pictures.source(group.front()) + " (" + dataset.class_names[static_cast<size_t>(a)] +
                          ") = " + pictures.source(i) + " (" + dataset.class_names[static_cast<size_t>(b)] +
                          ")");
        break;
      }
  finding.message = plural(finding.count, "picture") + " that stand there under different labels";
  add(findings, std::move(finding));
}

void find_sizes(const Pictures& pictures, int side, DatasetCheck& result) {
  Finding finding{.kind = "wrong size", .message = "", .count = 0, .examples = {}, .wrong = true};
  auto& [low, high, narrow, wide] = result.sizes;
  low = narrow = std::numeric_limits<int>::max();
  for (int64_t i = 0; i < pictures.size(); ++i) {
    const auto& [pixels, file, height, width] = pictures[i];
    if (height == 0) continue;
    low = std::min(low, height);
    high = std::max(high, height);
    narrow = std::min(narrow, width);
    wide = std::max(wide, width);
    if (side > 0 && (height != side || width != side))
      note(finding, pictures.source(i) + ": " + std::to_string(width) + " x " + std::to_string(height));
  }
  finding.message =
      plural(finding.count, "picture") + " not of " + std::to_string(side) + " x " + std::to_string(side);
  if (high == 0) low = narrow = 0;
  add(result.findings, std::move(finding));
}

void compare_counts(const Dataset& dataset, const DatasetEntry& entry, DatasetCheck& result) {
  const PublishedSet& set = *entry.published;
  const auto compare = [&](const char* what, int64_t have, int64_t wanted, int64_t sign) {
    if (wanted > 0 && have != wanted)
      result.findings.push_back(
          {"count",
           std::to_string(have) + " " + what + ", the published set has " + std::to_string(wanted),
           sign,
           {},
           true});
  };
  const bool coarse = entry.coarse_classes > 0 && dataset.classes() == entry.coarse_classes;
  compare("classes", dataset.classes(), coarse ? entry.coarse_classes : set.classes, 1);
  compare("training images", result.images[0], set.train, 1);
  compare("validation images", result.images[1], set.validation, 1);
}

void find_empty_classes(const Dataset& dataset, DatasetCheck& result) {
  if (dataset.train->has_masks()) return;  // labels are of pixels, not of images
  for (size_t s = 0; s < 2; ++s) {
    // Latents are held out whatever their class: they judge a loss, not classes.
    const bool wrong = s == 0 || dataset.latent_scale == 0;
    Finding finding{.kind = "empty class", .message = "", .count = 0, .examples = {}, .wrong = wrong};
    for (size_t k = 0; k < dataset.class_names.size(); ++k)
      if (result.histogram[s][k] == 0) note(finding, dataset.class_names[k]);
    finding.message =
        plural(finding.count, "label") + " without a picture in the " + split_names[s] + " split";
    add(result.findings, std::move(finding));
  }
}

}  // namespace

bool DatasetCheck::passed() const {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.wrong; });
}

DatasetCheck check_dataset(const Dataset& dataset, const DatasetEntry* entry,
                           const std::function<void(double)>& on_progress) {
  DatasetCheck result;
  for (size_t s = 0; s < 2; ++s) {
    const Split& split = s == 0 ? *dataset.train : *dataset.validation;
    result.images[s] = split.size();
    result.histogram[s] = class_counts(split, dataset.classes());
  }
  const PublishedSet* set = entry && entry->published ? &*entry->published : nullptr;
  if (set) compare_counts(dataset, *entry, result);
  find_empty_classes(dataset, result);

  Pictures pictures(dataset);
  Finding unreadable{.kind = "unreadable", .message = "", .count = 0, .examples = {}, .wrong = true};
  for (const std::string& failure : pictures.look(on_progress)) note(unreadable, failure);
  unreadable.message = plural(unreadable.count, "picture") + " that cannot be decoded" +
                       (dataset.train->has_masks() ? ", or whose mask cannot" : "");
  add(result.findings, std::move(unreadable));
  find_sizes(pictures, set ? set->side : 0, result);
  const auto same = groups(pictures);
  add(result.findings, copies_within(pictures, same));
  add(result.findings, leaks(pictures, same, set ? set->leaks : 0));
  find_contradictions(pictures, same, dataset, result.findings);
  return result;
}

std::vector<Finding> check_sums(const fs::path& dir, const DatasetEntry& entry) {
  Finding finding{.kind = "checksum", .message = "", .count = 0, .examples = {}, .wrong = true};
  for (const auto& [name, wanted] : entry.published->sums)
    for (const fs::path& root : {dir, dir / entry.published->folder, dir / entry.name}) {
      if (!is_file(root / name)) continue;
      if (const std::string sum = sums_of_file(root / name).md5; sum != wanted)
        note(finding, (root / name).string() + ": MD5 " + sum + ", published " + wanted);
      break;
    }
  finding.message = plural(finding.count, "file") + " other than the published ones";
  std::vector<Finding> findings;
  add(findings, std::move(finding));
  return findings;
}

}  // namespace tessera
