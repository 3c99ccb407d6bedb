#include "data/augment/scene_crop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "data/formats/resize.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// Whether the box has labelled pixels, and no class has more than `share` of them. A byte is class + 1, or 0.
bool is_mixed(const Image& mask, const PixelBox& box, double share) {
  std::array<int64_t, 256> counts{};
  for (int64_t y = box.top; y < box.bottom; ++y)
    for (int64_t x = box.left; x < box.right; ++x)
      ++counts[*mask.at(static_cast<int>(y), static_cast<int>(x))];
  counts[0] = 0;
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                most = *std::max_element(counts.begin(), counts.end());
  return all > most && static_cast<double>(most) < share * static_cast<double>(all);
}

}  // namespace

std::array<int, 2> SceneCrop::scaled_size(int height, int width, double scale) const {
  const double side = scale * std::min(height_, width_);
  const double factor =
      std::min(options_.longest * side / std::max(height, width), side / std::min(height, width));
  const auto scaled = [factor](int length) { return std::max(1, static_cast<int>(length * factor + 0.5)); };
  return {scaled(height), scaled(width)};
}

PixelBox SceneCrop::draw_box(const Image& mask, Random& random) const {
  constexpr int draws = 10;
  const int64_t rows = std::min(mask.height, height_), columns = std::min(mask.width, width_);
  for (int i = 0;; ++i) {
    const int64_t top = random.below(mask.height - rows + 1), left = random.below(mask.width - columns + 1);
    const PixelBox box{top, left, top + rows, left + columns};
    if (i == draws || options_.most_of_one_class >= 1 || is_mixed(mask, box, options_.most_of_one_class))
      return box;
  }
}

void SceneCrop::operator()(Image& picture, Image& mask, Random& random) const {
  check(picture.height == mask.height && picture.width == mask.width, "augment: a picture of ",
        picture.height, " x ", picture.width, " pixels has a mask of ", mask.height, " x ", mask.width);
  const double scale = random.uniform(options_.min_scale, options_.max_scale);
  const auto [height, width] = scaled_size(picture.height, picture.width, scale);
  picture = resize_bilinear(picture, height, width);
  mask = resize_nearest(mask, height, width);
  const PixelBox box = draw_box(mask, random);
  picture = cut_out(picture, box);
  mask = cut_out(mask, box);
}

}  // namespace tessera
