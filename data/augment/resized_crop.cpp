#include "data/augment/resized_crop.h"

#include <algorithm>
#include <cmath>

#include "data/formats/resize.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

int64_t rounded(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

}  // namespace

PixelBox draw_resized_crop(const ResizedCropOptions& options, int64_t height, int64_t width, Random& random) {
  constexpr int draws = 10;
  const double low = options.min_ratio, high = 1 / low;
  const auto whole = static_cast<double>(height * width);
  for (int i = 0; i < draws; ++i) {
    const double area = random.uniform(options.min_area, options.max_area) * whole;
    const double ratio = std::exp(random.uniform(std::log(low), std::log(high)));
    const int64_t columns = rounded(std::sqrt(area * ratio)), rows = rounded(std::sqrt(area / ratio));
    if (columns <= 0 || columns > width || rows <= 0 || rows > height) continue;
    const int64_t top = random.below(height - rows + 1), left = random.below(width - columns + 1);
    return {top, left, top + rows, left + columns};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  const int64_t columns =
      ratio > high ? std::clamp<int64_t>(rounded(static_cast<double>(height) * high), 1, width) : width;
  const int64_t rows =
      ratio < low ? std::clamp<int64_t>(rounded(static_cast<double>(width) / low), 1, height) : height;
  const int64_t top = (height - rows) / 2, left = (width - columns) / 2;
  return {top, left, top + rows, left + columns};
}

void crop_and_resize(Image& image, const PixelBox& box, int height, int width, Filter filter, Layer layer) {
  check(box.top >= 0 && box.left >= 0 && box.area() > 0 && box.bottom <= image.height &&
            box.right <= image.width,
        "augment: rows ", box.top, " to ", box.bottom, " and columns ", box.left, " to ", box.right,
        " are no part of ", image.height, " x ", image.width, " pixels");
  const Image part = cut_out(image, box);
  if (layer == Layer::mask || filter == Filter::nearest)
    image = resize_nearest(part, height, width);
  else
    image = filter == Filter::bicubic ? resize_bicubic(part, height, width)
                                      : resize_bilinear(part, height, width);
}

}  // namespace tessera
