#include "models/segment_inference.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

// Two classes: each pixel's own value, and 0.
CropSegmenter echo(int64_t crop) {
  return {[](const Tensor& images) { return concat({images, scale(images, 0)}, 1); }, crop};
}

}  // namespace

TEST_CASE("slide: where crops start") {
  using Starts = std::vector<int64_t>;
  CHECK(crop_starts(10, 4, 3) == Starts{0, 3, 6});
  CHECK(crop_starts(11, 4, 3) == Starts{0, 3, 6, 7});
  CHECK(crop_starts(4, 4, 3) == Starts{0});
  CHECK(crop_starts(9, 4, 4) == Starts{0, 4, 5});
  CHECK(error_of([] { crop_starts(3, 4, 3); }).starts_with("slide: crops of 4 every 3 of 3 pixels;"));
  CHECK(error_of([] { crop_starts(4, 4, 0); }).starts_with("slide: crops of 4 every 0 of 4 pixels;"));
  CHECK(error_of([] { crop_starts(16, 4, 9); }) ==  // the pixels between would be 0 / 0
        "slide: a stride of 9 pixels from window to window leaves pixels between windows of 4 that none of "
        "them sees; a stride of at most 4 is wanted");
}

TEST_CASE("slide: the logits of overlapping crops are averaged") {
  const Tensor images = random_tensor({2, 1, 7, 9}, 1);
  const std::vector<double> y = slide(echo(4), images, 3).values(), x = images.values();
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 63; ++i) CHECK(y[b * 126 + i] == doctest::Approx(x[b * 63 + i]).epsilon(1e-12));
  // Each crop answers with its number: rows of 1, 2, 3 crops overlap by two columns.
  double number = 0;
  const CropSegmenter counting{[&](const Tensor&) { return Tensor::full({1, 1, 4, 4}, ++number); }, 4};
  CHECK(slide(counting, Tensor::zeros({1, 1, 4, 8}), 2).values() ==
        std::vector<double>{1, 1, 1.5, 1.5, 2.5, 2.5, 3, 3, 1, 1, 1.5, 1.5, 2.5, 2.5, 3, 3,
                            1, 1, 1.5, 1.5, 2.5, 2.5, 3, 3, 1, 1, 1.5, 1.5, 2.5, 2.5, 3, 3});
}

TEST_CASE("slide: an image smaller than a crop is padded with zeros on the right and at the bottom") {
  Tensor seen;
  const CropSegmenter looking{[&](const Tensor& crop) { return seen = crop; }, 3};
  const Tensor image = Tensor::from({1, 2, 3, 4}, {1, 1, 2, 2});
  CHECK(slide(looking, image, 2).values() == image.values());
  CHECK(seen.values() == std::vector<double>{1, 2, 0, 3, 4, 0, 0, 0, 0});
}

TEST_CASE("probabilities: scales and mirror images are averaged, at the wanted size") {
  const Tensor image = Tensor::from({std::log(3.0), 0}, {1, 1, 1, 2}, DType::f64);
  CHECK(segment_probabilities(echo(1), {image}, false, 1, 2, 1).values()[0] == doctest::Approx(0.75));
  CHECK(segment_probabilities(echo(1), {image}, false, 1, 2, 1).values()[2] == doctest::Approx(0.25));
  // The network sees the mirrored image, its answer is turned back: for the echo, no change.
  const Tensor once = segment_probabilities(echo(1), {image}, true, 1, 2, 1);
  CHECK(once.values()[0] == doctest::Approx(0.75));
  CHECK(once.values()[1] == doctest::Approx(0.5));
  const Tensor other = Tensor::full({1, 1, 2, 4}, 0, DType::f64);  // 1/2 for both classes everywhere
  const Tensor both = segment_probabilities(echo(1), {image, other}, false, 3, 5, 1);
  CHECK(both.shape() == Shape{1, 2, 3, 5});
  CHECK(both.values()[0] == doctest::Approx(0.625));
  CHECK(error_of([&] { segment_probabilities(echo(1), {}, true, 1, 2, 1); }) ==
        "segment: no images, at one scale at least they are wanted");
}

TEST_CASE("largest class: the first of equals") {
  const Tensor scores = Tensor::from({1, 5, 2, 1, 5, 2, 0, 0, 3}, {1, 3, 1, 3});
  CHECK(largest_class(scores).integers() == std::vector<int64_t>{0, 0, 2});
  CHECK(error_of([] {
          largest_class(Tensor::zeros({2, 3}));
        }) == "segment: scores [2, 3], [B, K, H, W] are wanted");
}

TEST_CASE("scores: over a set, without the pixels of no class") {
  const auto pixels = [](std::vector<int64_t> of) {
    return Tensor::from(of, {1, 1, static_cast<int64_t>(of.size())});
  };
  SegmentationCounts counts(4);
  counts.add(pixels({0, 0, 1, 1}), pixels({0, 1, 1, 255}));
  counts.add(pixels({2}), pixels({0}));
  const auto [accuracy, mean, iou] = counts.scores();
  CHECK(accuracy == 0.5);
  CHECK(iou[0] == doctest::Approx(1.0 / 3));  // one hit; one other guessed 0, one 0 was missed
  CHECK(iou[1] == 0.5);
  CHECK(iou[2] == 0);
  CHECK(std::isnan(iou[3]));
  CHECK(mean == doctest::Approx((1.0 / 3 + 0.5) / 3));
  const auto refusal = [&](const Tensor& predicted, const Tensor& target) {
    return error_of([&] { counts.add(predicted, target); });
  };
  CHECK(refusal(pixels({4}), pixels({0})).starts_with("segment: pixel 0 is 0 and predicted 4,"));
  CHECK(refusal(pixels({0}), pixels({254})).starts_with("segment: pixel 0 is 254 and predicted 0,"));
  CHECK(refusal(pixels({0, 1}), pixels({0})) == "segment: predicted [1, 1, 2] and target [1, 1, 1] differ");
}
