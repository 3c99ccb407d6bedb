#include "apps/training/whole_pictures.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "data/formats/resize.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

constexpr int64_t crop = 6, classes = 3;
constexpr Normalisation plain{{0, 0, 0}, {1, 1, 1}};

// Three pictures of different sizes, with masks of which every seventh pixel has no class.
class Pictures : public Split {
 public:
  int64_t size() const override { return 3; }
  int64_t label(int64_t) const override { return 0; }
  void image(int64_t i, Image& out) const override { fill(i, out, 97); }
  void mask(int64_t i, Image& out) const override {
    fill(i, out, 31);
    for (size_t p = 0; p < out.pixels.size(); p += 3)
      for (size_t c = 0; c < 3; ++c)
        out.pixels[p + c] = p % 7 == 0 ? 0 : static_cast<uint8_t>(1 + out.pixels[p] % classes);
  }
  std::string source(int64_t i) const override { return "picture " + std::to_string(i); }
  bool has_masks() const override { return true; }

 private:
  static void fill(int64_t i, Image& out, size_t step) {
    out.resize(std::array{9, 6, 7}[static_cast<size_t>(i)], std::array{6, 14, 7}[static_cast<size_t>(i)]);
    for (size_t p = 0; p < out.pixels.size(); ++p)
      out.pixels[p] = static_cast<uint8_t>((p * p * step + p * 13 + static_cast<size_t>(i)) % 251);
  }
};

// The logit of class k is channel k times a weight that falls from left to right and from top to bottom of a
// window, so that windows and mirror images disagree.
double weight(int64_t y, int64_t x) { return 3.0 / static_cast<double>(1 + x + 2 * y); }

CropSegmenter falling() {
  return {[](const Tensor& images) {
            std::vector<double> v = images.values();
            for (size_t i = 0; i < v.size(); ++i) {
              const auto at = static_cast<int64_t>(i);
              v[i] *= weight(at / crop % crop, at % crop);
            }
            return Tensor::from(v, images.shape(), DType::f32);
          },
          crop};
}

using Plane = std::vector<std::vector<double>>;  // [H][W]

std::vector<int64_t> starts_of(int64_t length, int64_t stride) {
  std::vector<int64_t> starts;
  for (int64_t s = 0; s + crop < length; s += stride) starts.push_back(s);
  starts.push_back(length - crop);
  return starts;
}

// Pixel by pixel: the mean over all windows that cover it.
Plane windowed(const Image& image, size_t k, bool mirrored, int64_t stride) {
  Plane logits(static_cast<size_t>(image.height), std::vector<double>(static_cast<size_t>(image.width)));
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      double sum = 0, count = 0;
      for (const int64_t top : starts_of(image.height, stride))
        for (const int64_t left : starts_of(image.width, stride)) {
          if (y < top || y >= top + crop || x < left || x >= left + crop) continue;
          sum += weight(y - top, x - left), ++count;
        }
      const int64_t column = mirrored ? image.width - 1 - x : x;
      const double value = image.at(static_cast<int>(y), static_cast<int>(column))[k] / 255.0;
      logits[static_cast<size_t>(y)][static_cast<size_t>(column)] = value * sum / count;
    }
  return logits;
}

// Bilinear with half-pixel centres, borders repeated.
double read_at(const Plane& plane, double y, double x) {
  const auto pick = [](double at, size_t length) {
    const double inside = std::clamp(at, 0.0, static_cast<double>(length - 1));
    const auto low = static_cast<size_t>(inside);
    return std::tuple{low, std::min(low + 1, length - 1), inside - static_cast<double>(low)};
  };
  const auto [y0, y1, fy] = pick(y, plane.size());
  const auto [x0, x1, fx] = pick(x, plane[0].size());
  return (1 - fy) * ((1 - fx) * plane[y0][x0] + fx * plane[y0][x1]) +
         fy * ((1 - fx) * plane[y1][x0] + fx * plane[y1][x1]);
}

struct Expected {
  double right = 0, all = 0;
  std::array<double, classes> hits{}, truth{}, guessed{};
};

void judge(Expected& e, const Image& picture, const Image& mask, const std::vector<Image>& sizes,
           int64_t stride) {
  std::vector<std::vector<Plane>> runs;  // [size and side][class]
  for (const Image& image : sizes)
    for (const bool mirrored : {false, true}) {
      runs.emplace_back();
      for (size_t k = 0; k < classes; ++k) runs.back().push_back(windowed(image, k, mirrored, stride));
    }
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      std::array<double, classes> p{};
      for (const auto& run : runs) {
        std::array<double, classes> each{};
        double sum = 0;
        for (size_t k = 0; k < classes; ++k) {
          const double rows = static_cast<double>(run[k].size()) / picture.height,
                       columns = static_cast<double>(run[k][0].size()) / picture.width;
          each[k] = std::exp(read_at(run[k], (y + 0.5) * rows - 0.5, (x + 0.5) * columns - 0.5));
          sum += each[k];
        }
        for (size_t k = 0; k < classes; ++k) p[k] += each[k] / sum;
      }
      if (mask.at(y, x)[0] == 0) continue;
      const size_t truth = mask.at(y, x)[0] - size_t{1};
      const auto guess = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
      ++e.all, ++e.truth[truth], ++e.guessed[guess];
      if (guess == truth) ++e.right, ++e.hits[truth];
    }
}

}  // namespace

TEST_CASE("whole pictures: the size of a picture at a scale") {
  CHECK(scaled_size(512, 683, 512, 1) == std::array{512, 683});
  CHECK(scaled_size(300, 400, 512, 1.75) == std::array{896, 1195});
  CHECK(scaled_size(100, 1000, 512, 1) == std::array{205, 2048});  // the longer side is the limit
  CHECK(scaled_size(1000, 100, 512, 0.5) == std::array{1024, 102});
  CHECK(error_of([] { scaled_size(3, 4, 512, 0); }).find("positive numbers are wanted") != std::string::npos);
  CHECK(scaled_size(1000, 1000, 512, 11) == std::array{5632, 5632});
  CHECK(error_of([] { scaled_size(64, 64, 64, 1000); }) ==
        "segment: 64 x 64 pixels to a shorter side of 64 times 1000: more than 33554432 pixels; a smaller "
        "scale is wanted (--scales, --short-side)");
}

TEST_CASE("whole pictures: scores equal a computation pixel by pixel, over windows, scales and mirrors") {
  const Pictures pictures;
  Expected e;
  for (int64_t i = 0; i < pictures.size(); ++i) {
    Image picture, mask;
    pictures.image(i, picture);
    pictures.mask(i, mask);
    const int shorter = std::min(picture.height, picture.width);
    std::vector<Image> sizes;
    for (const int side : {6, 9})
      sizes.push_back(resize_bilinear(picture, (picture.height * side * 2 + shorter) / (2 * shorter),
                                      (picture.width * side * 2 + shorter) / (2 * shorter)));
    judge(e, picture, mask, sizes, 4);
  }
  const WholePictureScores scores =
      judge_whole_pictures(falling(), pictures, plain, {.scales = {1, 1.5}, .flips = true});
  const auto whole = scores.pixels.scores();
  CHECK(scores.images == 3);
  CHECK(whole.pixel_accuracy == doctest::Approx(e.right / e.all).epsilon(1e-12));
  double iou = 0, accuracy = 0;
  for (size_t k = 0; k < classes; ++k) {
    iou += e.hits[k] / (e.truth[k] + e.guessed[k] - e.hits[k]) / classes;
    accuracy += e.hits[k] / e.truth[k] / classes;
  }
  CHECK(whole.mean_iou == doctest::Approx(iou).epsilon(1e-12));
  CHECK(scores.mean_accuracy == doctest::Approx(accuracy).epsilon(1e-12));
  // Each part of the procedure counts: without it the scores differ.
  const auto accuracy_of = [&](const WholePictureOptions& options) {
    return judge_whole_pictures(falling(), pictures, plain, options).pixels.scores().pixel_accuracy;
  };
  CHECK(accuracy_of({.scales = {1}, .flips = true}) != whole.pixel_accuracy);
  CHECK(accuracy_of({.scales = {1, 1.5}}) != whole.pixel_accuracy);
}

TEST_CASE("whole pictures: answers that are not finite are refused by the picture's name") {
  const CropSegmenter broken{[](const Tensor& x) { return Tensor::full(x.shape(), std::nan("")); }, crop};
  const std::string error = error_of([&] { judge_whole_pictures(broken, Pictures(), plain, {}); });
  CHECK(error.starts_with("segment: picture 0: the model's outputs are not finite"));
}
