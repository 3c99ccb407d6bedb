#include "data/dataset.h"

#include <algorithm>

#include "data/formats/resize.h"
#include "engine/core/error.h"

namespace tessera {

void Split::mask(int64_t i, Image&) const { fail(source(i), ": has no mask; its label is of the whole"); }

void Split::latent(int64_t i, Random, float*) const { fail(source(i), ": is a picture, no latent"); }

StoredSplit::StoredSplit(int height, int width, int channels, std::vector<uint8_t> pixels,
                         std::vector<int32_t> labels, std::string origin)
    : height_(height),
      width_(width),
      channels_(channels),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      origin_(std::move(origin)) {
  const int64_t wanted = size() * height * width * channels;
  check(channels == 1 || channels == 3, origin_, ": ", channels, " channels; 1 or 3 are taken");
  check(static_cast<int64_t>(pixels_.size()) == wanted, origin_, ": ", pixels_.size(), " bytes of pixels, ",
        labels_.size(), " images of ", height, " x ", width, " x ", channels, " are ", wanted);
}

void StoredSplit::image(int64_t i, Image& out) const {
  out.resize(height_, width_);
  const int64_t area = int64_t{height_} * width_;
  const uint8_t* from = pixels_.data() + i * area * channels_;
  if (channels_ == 3) {
    std::copy_n(from, area * 3, out.pixels.begin());
  } else {
    for (int64_t p = 0; p < area; ++p) std::fill_n(out.pixels.begin() + 3 * p, 3, from[p]);
  }
}

std::string StoredSplit::source(int64_t i) const { return origin_ + ", image " + std::to_string(i); }

MaskedSplit::MaskedSplit(int height, int width, std::vector<uint8_t> pixels, std::vector<uint8_t> masks,
                         const std::vector<int32_t>& labels, const std::string& origin)
    : StoredSplit(height, width, 3, std::move(pixels), labels, origin),
      masks_(height, width, 1, std::move(masks), labels, origin + ", masks") {}

namespace {

// The innermost folder that contains all of the files.
std::filesystem::path common_folder(const std::vector<FileSplit::Item>& items) {
  if (items.empty()) return {};
  std::filesystem::path common = items.front().path.parent_path();
  for (const auto& [path, label] : items) {
    const auto [end, other] = std::mismatch(common.begin(), common.end(), path.begin(), path.end());
    if (end == common.end()) continue;
    std::filesystem::path shared;
    for (auto part = common.begin(); part != end; ++part) shared /= *part;
    common = shared;
  }
  return common;
}

}  // namespace

FileSplit::FileSplit(std::vector<Item> items, int image_size, size_t cache_bytes, const SquareFit& fit)
    : items_(std::move(items)), folder_(common_folder(items_)), image_size_(image_size), fit_(fit) {
  check(image_size > 0, "image files: image size ", image_size, " is not positive");
  const auto side = static_cast<size_t>(image_size);
  cache_ = std::make_unique<ImageCache>(std::ssize(items_), side * side * 3, cache_bytes);
}

std::string FileSplit::name(int64_t i) const {
  return items_[static_cast<size_t>(i)].path.lexically_relative(folder_).replace_extension().string();
}

void FileSplit::image(int64_t i, Image& out) const {
  out.resize(image_size_, image_size_);
  if (cache_->get(i, out.pixels.data())) return;
  const auto& path = items_[static_cast<size_t>(i)].path;
  out = fit_square(load_image(path), image_size_, path.string(), fit_);
  cache_->keep(i, out.pixels.data());
}

std::vector<int64_t> class_counts(const Split& split, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (int64_t i = 0; i < split.size(); ++i) ++counts.at(static_cast<size_t>(split.label(i)));
  return counts;
}

}  // namespace tessera
