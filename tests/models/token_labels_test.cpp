#include "models/parts/token_labels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "tests/error_of.h"

using namespace tessera;

TEST_CASE("mix-token: the box comes from the mirrored image, and twice is as before") {
  const Tensor tokens = Tensor::from({1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}, {2, 6, 1});
  const Box box{0, 1, 1, 3};  // the end of the first of two rows
  const Tensor inside = mask_of({2, 3}, box);
  CHECK(inside.values() == std::vector<double>{0, 1, 1, 0, 0, 0});
  const Tensor swapped = swap_box(tokens, inside);
  CHECK(swapped.values() == std::vector<double>{1, 12, 13, 4, 5, 6, 11, 2, 3, 14, 15, 16});
  CHECK(swap_box(swapped, inside).values() == tokens.values());
  CHECK_THROWS_WITH_AS(mask_of({2, 3}, {0, 3, 0, 1}),
                       "mix-token: rows 0 to 3 and columns 0 to 1 are no box of 2 x 3 tokens", Error);
  CHECK(error_of([&] {
          swap_box(tokens, mask_of({2, 2}, {0, 1, 0, 1}));
        }) == "mix-token: tokens [2, 6, 1] and the mask [4, 1] of a box; [N, 1] is wanted");
  CHECK(error_of([] { to_box(Tensor::zeros({4})); }) == "mix-token: a box is i64 [4], not f32 [4]");
}

TEST_CASE("mix-token: drawn boxes lie in the grid and take half of it on average, less what is clipped") {
  Random random(3);
  double share = 0;
  for (int i = 0; i < 2000; ++i) {
    const Box box = draw_box({14, 10}, random);
    CHECK((0 <= box.top && box.top <= box.bottom && box.bottom <= 14));
    CHECK((0 <= box.left && box.left <= box.right && box.right <= 10));
    share += static_cast<double>((box.bottom - box.top) * (box.right - box.left)) / 140;
  }
  CHECK(share / 2000 > 0.2);
  CHECK(share / 2000 < 0.5);
}

TEST_CASE("token label loss: the image's target is mixed by the box, the patches' are not") {
  const double e = std::exp(1.0), hit = std::log((e + 1) / e), miss = std::log(e + 1);  // of logits 1, 0
  const Tensor logits = Tensor::from({1, 0, 1, 0}, {2, 2}, DType::f64);
  const Tensor aux = Tensor::zeros({2, 4, 2}, DType::f64);
  const TensorMap inputs{{"target", Tensor::from(std::vector<int64_t>{0, 1}, {2})}};
  const TokenTargets targets = targets_of(inputs, logits, 4);
  CHECK(targets.patches.shape() == Shape{2, 4, 2});
  CHECK(targets.patches.values()[8] == 0);
  CHECK(targets.patches.values()[9] == 1);
  const double patches = 0.5 * std::log(2.0);
  const Tensor box = mask_of({2, 2}, {0, 1, 0, 1}).to(DType::f64);
  const auto loss = [&](const Tensor& inside, const LossOptions& options = {}) {
    return token_label_loss(logits, aux, targets, inside, options).item();
  };
  CHECK(loss({}) == doctest::Approx((hit + miss) / 2 + patches));
  CHECK(loss(box) == doctest::Approx((hit + miss) / 2 + patches));
  CHECK(loss({}, {.rows = 4}) == doctest::Approx(loss({}) / 2));
  const TokenTargets soft{Tensor::from({1, 0, 1, 0}, {2, 2}, DType::f64), targets.patches};
  CHECK(token_label_loss(logits, aux, soft, box).item() == doctest::Approx(hit + patches));
}

TEST_CASE("targets: soft ones as they are, two labels mixed, errors") {
  const Tensor logits = Tensor::zeros({2, 3});
  const Tensor a = Tensor::from(std::vector<int64_t>{0, 2}, {2}),
               b = Tensor::from(std::vector<int64_t>{1, 2}, {2});
  const TensorMap both{{"target", a}, {"target_b", b}, {"lam", Tensor::from({0.75}, {})}};
  CHECK(targets_of(both, logits, 1).images.values() == std::vector<double>{0.75, 0.25, 0, 0, 0, 1});
  const Tensor soft = Tensor::full({2, 3}, 0.5);
  CHECK(targets_of({{"target", soft}}, logits, 1).images.raw() == soft.raw());
  CHECK_THROWS_WITH_AS(targets_of({{"target", Tensor::from(std::vector<int64_t>{0, 3}, {2})}}, logits, 1),
                       "token labels: label 3 of image 1, the classes are 0 to 2", Error);
  CHECK(error_of([&] { targets_of({}, logits, 1); }).find("'target'") != std::string::npos);
  CHECK(error_of([&] {
          targets_of({{"target", Tensor::zeros({3}, DType::i64)}}, logits, 1);
        }) == "token labels: logits [2, 3] take a target i64 [2] or soft of their shape, not i64 [3]");
}

TEST_CASE("token targets: a map of one place says the same everywhere; kept scores stand out") {
  const Tensor values = Tensor::from({std::log(3.0)}, {1, 1, 1}, DType::f64);
  const Tensor indices = Tensor::from(std::vector<int64_t>{1}, {1, 1, 1});
  const auto [image, patches] = token_targets(values, indices, View{}, {2, 2}, 2, 0.1);
  CHECK(image.shape() == Shape{2});
  CHECK(image.values()[1] == doctest::Approx(0.9 * 0.75 + 0.05));
  CHECK(patches.shape() == Shape{4, 2});
  for (size_t i = 0; i < 4; ++i) CHECK(patches.values()[2 * i + 1] == doctest::Approx(image.values()[1]));
  CHECK(error_of([&] {
          token_targets(values, indices, View{}, {2, 2}, 1, 0.1);
        }).find("class 1") != std::string::npos);
  CHECK(error_of([&] {
          token_targets(values, values, View{}, {2, 2}, 2, 0.1);
        }).starts_with("token targets:"));
  CHECK_THROWS_WITH_AS(token_targets(values, indices, View{.a = 0}, {2, 2}, 2, 0.1),
                       "token targets: a view without area", Error);
  const double infinite = std::numeric_limits<double>::infinity();
  for (const View& view :
       {View{.a = 1e23}, View{.e = infinite}, View{.c = std::nan("")}, View{.f = infinite}})
    CHECK(error_of([&] {
            token_targets(values, indices, view, {2, 2}, 2, 0.1);
          }).find("at most 4096 a side are read") != std::string::npos);
}

TEST_CASE("token targets: where every class has a score far below 0, as of any logits") {
  const Tensor values = Tensor::from({-900, -900 + std::log(3.0)}, {2, 1, 1}, DType::f64);
  const Tensor indices = Tensor::from(std::vector<int64_t>{1, 0}, {2, 1, 1});
  const std::vector<double> image = token_targets(values, indices, View{}, {1, 1}, 2, 0).images.values();
  CHECK(image[0] == doctest::Approx(0.75));
  CHECK(image[1] == doctest::Approx(0.25));
}

TEST_CASE("token targets of a batch are those of torchvision's roi_align, flipped ones too") {
  // Maps of 6 x 7 places, 5 of 12 classes in each, read at 4 x 3 tokens; pictures 1 and 3 are mirrored.
  const TensorFile golden = read_safetensors(TESSERA_FIXTURES "/augment/token-crops.safetensors");
  const Tensor &maps = golden.at("token_maps"), &views = golden.at("token_views");
  const auto [images, patches] = token_targets(maps, views, {4, 3}, 12);
  CHECK(relative_error(images, golden.at("target")) < 1e-6);
  CHECK(relative_error(patches, golden.at("aux_target")) < 1e-6);
  CHECK(token_targets(maps.rows(0, 0), views.rows(0, 0), {4, 3}, 12).patches.shape() == Shape{0, 12, 12});
  CHECK_THROWS_WITH_AS(token_targets(maps, views, {4, 3}, 11),
                       "token targets: class 11, the classes are 0 to 10", Error);
  const std::string wanted = "f32 [B, 2, T, h, w] and f64 [B, 6] are wanted";
  CHECK(error_of([&] {
          token_targets(maps, views.rows(0, 2), {4, 3}, 12);
        }).find(wanted) != std::string::npos);
  CHECK(error_of([&] {
          token_targets(maps.reshape({4, 2, 5, 42}), views, {4, 3}, 12);
        }).find(wanted) != std::string::npos);
}
