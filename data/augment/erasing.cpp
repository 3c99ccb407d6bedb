#include "data/augment/erasing.h"

#include <algorithm>
#include <cmath>

namespace tessera {

std::optional<PixelBox> draw_erasing_box(const ErasingOptions& options, int64_t height, int64_t width,
                                         Random& random) {
  constexpr int draws = 100;
  const double low = options.min_ratio, high = 1 / low;
  for (int i = 0; i < draws; ++i) {
    const double area =
        random.uniform(options.min_area, options.max_area) * static_cast<double>(height * width);
    const double ratio = options.log_ratio ? std::exp(random.uniform(std::log(low), std::log(high)))
                                           : random.uniform(low, high);
    const auto rows = static_cast<int64_t>(std::nearbyint(std::sqrt(area * ratio))),
               columns = static_cast<int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (rows >= height || columns >= width) continue;
    const int64_t top = random.below(height - rows + 1), left = random.below(width - columns + 1);
    return PixelBox{top, left, top + rows, left + columns};
  }
  return std::nullopt;
}

void RandomErasing::operator()(std::span<float> picture, const Shape& shape, Random& random) const {
  if (!random.chance(options_.probability)) return;
  const int64_t height = shape[1], width = shape[2];
  const auto box = draw_erasing_box(options_, height, width, random);
  if (!box) return;
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = box->top; y < box->bottom; ++y) {
      float* row = picture.data() + (c * height + y) * width;
      if (options_.fill == ErasingOptions::Fill::noise)
        std::generate(row + box->left, row + box->right, [&] { return static_cast<float>(random.normal()); });
      else
        std::fill(row + box->left, row + box->right,
                  options_.fill == ErasingOptions::Fill::mean ? mean_[static_cast<size_t>(c)] : 0.0f);
    }
}

}  // namespace tessera
