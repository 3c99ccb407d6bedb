#include "data/augment/erasing.h"

#include <algorithm>
#include <cmath>

#include "data/augment/erasing_kernels.h"

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

RandomErasing::RandomErasing(const ErasingOptions& options, const std::array<float, 3>& mean)
    : options_(options), fill_{.value = {}, .noise = options.fill == ErasingOptions::Fill::noise} {
  if (options.fill == ErasingOptions::Fill::mean) fill_.value = mean;
}

Erasure RandomErasing::draw(int64_t height, int64_t width, Random& random) const {
  Erasure erasure;
  if (!random.chance(options_.probability)) return erasure;
  const PixelBox box = draw_erasing_box(options_, height, width, random).value_or(PixelBox{});
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  return {number(box.top), number(box.left), number(box.bottom), number(box.right), random.state()};
}

void RandomErasing::operator()(std::span<float> picture, const Shape& shape, Random& random) const {
  const int64_t height = shape[1], width = shape[2];
  const Erasure box = draw(height, width, random);
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = box.top; y < box.bottom; ++y) {
      float* row = picture.data() + (c * height + y) * width;
      if (!fill_.noise) {
        std::fill(row + box.left, row + box.right, fill_.value[static_cast<size_t>(c)]);
        continue;
      }
      for (int x = box.left; x < box.right; ++x) {
        const double first = random.uniform();
        row[x] = noise_of(first, random.uniform());
      }
    }
}

}  // namespace tessera
