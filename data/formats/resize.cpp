#include "data/formats/resize.h"

#include <algorithm>
#include <cmath>

#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr int weight_bits = 22;

// The input pixels [first, first + weights.size()) of one output pixel, and their weights, of which 2^22
// is 1.
struct WeightedPixels {
  int first;
  std::vector<int> weights;
};

// A filter's weight at a distance below `radius` from its centre.
struct Triangle {
  static constexpr double radius = 1;
  static double weight(double x) { return std::max(0.0, 1 - std::abs(x)); }
};
struct Cubic {  // Keys, 1981
  static constexpr double radius = 2;
  static double weight(double x) {
    constexpr double slope = -0.5;
    x = std::abs(x);
    if (x < 1) return ((slope + 2) * x - (slope + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * slope : 0;
  }
};

template <class Filter> std::vector<WeightedPixels> filter_taps(int in, int out) {
  const double scale = static_cast<double>(in) / out, widened = std::max(scale, 1.0),
               reach = Filter::radius * widened;
  std::vector<WeightedPixels> taps;
  for (int o = 0; o < out; ++o) {
    const double centre = (o + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int last = std::min(in, static_cast<int>(centre + reach + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int i = first; i < last; ++i) {
      weights.push_back(Filter::weight((i - centre + 0.5) * (1 / widened)));
      sum += weights.back();
    }
    WeightedPixels& tap = taps.emplace_back(WeightedPixels{first, {}});
    for (const double weight : weights)
      tap.weights.push_back(static_cast<int>(std::lround(weight / sum * (1 << weight_bits))));
  }
  return taps;
}

// One channel of an output pixel; the input pixels are `stride` bytes apart.
uint8_t weigh(const WeightedPixels& taps, const uint8_t* from, int64_t stride) {
  int sum = 1 << (weight_bits - 1);
  for (size_t i = 0; i < taps.weights.size(); ++i)
    sum += taps.weights[i] * from[static_cast<int64_t>(i) * stride];
  return static_cast<uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

template <class Filter> Image resize_rows(const Image& image, int width) {
  if (width == image.width) return image;
  const std::vector<WeightedPixels> taps = filter_taps<Filter>(image.width, width);
  Image out(image.height, width);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) {
        const WeightedPixels& tap = taps[static_cast<size_t>(x)];
        out.at(y, x)[c] = weigh(tap, image.at(y, tap.first) + c, 3);
      }
  return out;
}

template <class Filter> Image resize_columns(Image image, int height) {
  if (height == image.height) return image;
  const std::vector<WeightedPixels> taps = filter_taps<Filter>(image.height, height);
  Image out(height, image.width);
  const int64_t row_bytes = int64_t{3} * image.width;
  for (int y = 0; y < height; ++y) {
    const WeightedPixels& tap = taps[static_cast<size_t>(y)];
    for (int64_t i = 0; i < row_bytes; ++i)
      out.at(y, 0)[i] = weigh(tap, image.at(tap.first, 0) + i, row_bytes);
  }
  return out;
}

template <class Filter> Image resize(const Image& image, int height, int width) {
  check(image.height > 0 && image.width > 0 && height > 0 && width > 0, "resize: from ", image.width, " x ",
        image.height, " to ", width, " x ", height, " pixels");
  return resize_columns<Filter>(resize_rows<Filter>(image, width), height);
}

// The size that an image is resized to, and the square that is cropped.
struct ResizedSquare {
  int height, width;
  PixelBox square;
};

ResizedSquare resized_square(const Image& image, int size, double crop, const std::string& path) {
  check(crop > 0 && crop <= 1, path, ": the crop of a picture is ", crop,
        ", a share above 0 and at most 1 was wanted");
  check_dimensions(image.height, image.width, path);
  const int64_t height = image.height, width = image.width, side = std::min(height, width);
  const auto wanted = static_cast<int64_t>(std::min<double>(std::floor(size / crop), max_image_pixels));
  const int64_t new_height = wanted * height / side, new_width = wanted * width / side;
  check_dimensions(new_height, new_width, path);
  const auto offset = [size](int64_t length) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(length - size) / 2));
  };
  const int64_t top = offset(new_height), left = offset(new_width);
  return {static_cast<int>(new_height), static_cast<int>(new_width), {top, left, top + size, left + size}};
}

}  // namespace

Image resize_bilinear(const Image& image, int height, int width) {
  return resize<Triangle>(image, height, width);
}

Image resize_bicubic(const Image& image, int height, int width) {
  return resize<Cubic>(image, height, width);
}

Image resize_nearest(const Image& image, int height, int width) {
  check(!image.pixels.empty() && height > 0 && width > 0, "resize: from ", image.width, " x ", image.height,
        " to ", width, " x ", height, " pixels");
  const auto from = [](int64_t i, int64_t count, int64_t old) {
    return static_cast<int>((2 * i + 1) * old / (2 * count));
  };
  Image out(height, width);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      std::copy_n(image.at(from(y, height, image.height), from(x, width, image.width)), 3, out.at(y, x));
  return out;
}

Image cut_out(const Image& image, const PixelBox& box) {
  const auto [top, left, bottom, right] = box;
  Image part(static_cast<int>(bottom - top), static_cast<int>(right - left));
  for (int y = 0; y < part.height; ++y)
    std::copy_n(image.at(static_cast<int>(top) + y, static_cast<int>(left)), 3 * (right - left),
                part.at(y, 0));
  return part;
}

Image fit_square(Image image, int size, const std::string& path, const SquareFit& fit) {
  if (image.height == size && image.width == size && fit.crop == 1) return image;
  const ResizedSquare to = resized_square(image, size, fit.crop, path);
  return cut_out((fit.bicubic ? resize_bicubic : resize_bilinear)(image, to.height, to.width), to.square);
}

Image fit_square_nearest(const Image& mask, int size, const std::string& path) {
  if (mask.height == size && mask.width == size) return mask;
  const ResizedSquare to = resized_square(mask, size, 1, path);
  return cut_out(resize_nearest(mask, to.height, to.width), to.square);
}

}  // namespace tessera
