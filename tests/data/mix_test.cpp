#include "data/augment/mix.h"

#include <cmath>
#include <numeric>
#include <set>

#include "data/augment/erasing.h"
#include "data/augment/erasing_kernels.h"
#include "data/augment/pipeline.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

const TensorFile& authors() {
  static const TensorFile file = read_safetensors(std::string(TESSERA_FIXTURES) + "/augment/mix.safetensors");
  return file;
}

PixelBox box_of(const std::string& name) {
  const std::vector<int64_t> at = authors().at(name).integers();
  return {at[0], at[1], at[2], at[3]};
}

bool same_floats(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::equal(a.data<float>(), a.data<float>() + a.elements(), b.data<float>());
}

Tensor mixed(const Mix& mix) {
  Tensor to = Tensor::empty(authors().at("x").shape());
  mix_images(authors().at("x"), mix, to);
  return to;
}

}  // namespace

TEST_CASE("mix: Mixup has the authors' floats") {
  for (int k = 0; k < 5; ++k) {
    CAPTURE(k);
    const std::string name = "mixup." + std::to_string(k);
    const Mix mix{authors().at("perm").integers(), authors().at(name + ".lam").item(), false, {}};
    CHECK(same_floats(mixed(mix), authors().at(name + ".output")));
  }
}

TEST_CASE("mix: CutMix has the authors' boxes, shares and floats") {
  for (int k = 0; k < 9; ++k) {
    CAPTURE(k);
    const std::string name = "cutmix." + std::to_string(k);
    const std::vector<int64_t> centre = authors().at(name + ".center").integers();
    const PixelBox box = cutmix_box(8, 10, authors().at(name + ".lam").item(), centre[0], centre[1]);
    CHECK(box == box_of(name + ".box"));
    CHECK(share_outside(box, 8, 10) == authors().at(name + ".lam_adjusted").item());
    CHECK(
        same_floats(mixed({authors().at("perm").integers(), 1, true, box}), authors().at(name + ".output")));
  }
}

TEST_CASE("mix: the partners' labels") {
  const Mix mix{authors().at("perm").integers(), 0.5, false, {}};
  Tensor to = Tensor::empty({6}, DType::i64);
  partner_labels(authors().at("labels"), mix, to);
  CHECK(to.integers() == authors().at("labels_b").integers());
  Tensor short_of_one = Tensor::empty({5}, DType::i64);
  check_refused([&] { partner_labels(authors().at("labels"), mix, short_of_one); }, "labels [6]", "[5]");
  check_refused([&] { mix_images(authors().at("x"), {{1, 0}, 1, false, {}}, to); }, "2 partners");
}

TEST_CASE("mix: how often, which, and how much") {
  Random random(3);
  const MixOptions both{.mixup = 1, .cutmix = 1, .probability = 0.5};
  int plain = 0, cut = 0;
  double lam_sum = 0, lam_squares = 0;
  constexpr int draws = 8000;
  for (int i = 0; i < draws; ++i) {
    const Mix mix = draw_mix(both, 5, 32, 32, random);
    if (mix.partners.empty()) {
      ++plain;
      CHECK(mix.lam == 1);
      continue;
    }
    CHECK(std::set<int64_t>(mix.partners.begin(), mix.partners.end()).size() == 5);
    CHECK((mix.lam >= 0 && mix.lam <= 1));
    cut += mix.cut;
    if (mix.cut) {
      CHECK(mix.lam == share_outside(mix.box, 32, 32));
    } else {
      lam_sum += mix.lam;
      lam_squares += mix.lam * mix.lam;
    }
  }
  CHECK(plain == doctest::Approx(draws / 2.0).epsilon(0.05));
  CHECK(cut == doctest::Approx(draws / 4.0).epsilon(0.08));
  const double mixups = draws - plain - cut;
  CHECK(lam_sum / mixups == doctest::Approx(0.5).epsilon(0.05));          // uniform: mean 1/2,
  CHECK(lam_squares / mixups == doctest::Approx(1.0 / 3).epsilon(0.05));  // mean square 1/3
  CHECK_FALSE(draw_mix({.cutmix = 1}, 2, 8, 8, random).partners.empty());
  CHECK(draw_mix({.cutmix = 1}, 2, 8, 8, random).cut);
  CHECK_FALSE(draw_mix({.mixup = 1}, 2, 8, 8, random).cut);
  CHECK(draw_mix({}, 2, 8, 8, random).partners.empty());
  CHECK(draw_mix({.mixup = 1, .probability = 0}, 2, 8, 8, random).partners.empty());
}

TEST_CASE("mix: Beta(a, a) has mean 1/2 and variance 1 / (8 a + 4)") {
  Random random(4);
  for (const double a : {0.2, 0.8, 1.0, 3.0}) {
    CAPTURE(a);
    double sum = 0, squares = 0;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      const double x = draw_beta(a, random);
      REQUIRE((x >= 0 && x <= 1));
      sum += x;
      squares += x * x;
    }
    CHECK(sum / draws == doctest::Approx(0.5).epsilon(0.02));
    CHECK(squares / draws - 0.25 == doctest::Approx(1 / (8 * a + 4)).epsilon(0.06));
  }
  check_refused([&] { draw_beta(0, random); }, "Beta(0, 0)");
}

TEST_CASE("erasing: a box filled with the mean, as the authors fill it") {
  const float* plain = authors().at("normalize.cifar10").data<float>();
  for (int k = 0; k < 3; ++k) {
    CAPTURE(k);
    const std::string name = "erase." + std::to_string(k);
    const std::vector<int64_t> at = authors().at(name + ".box").integers();  // top, left, height, width
    const float* wanted = authors().at(name + ".output").data<float>();
    const std::array<float, 3> mean{0.4914f, 0.4822f, 0.4465f};
    for (int64_t i = 0; i < 3072; ++i) {
      const int64_t y = i / 32 % 32, x = i % 32;
      const bool inside = y >= at[0] && y < at[0] + at[2] && x >= at[1] && x < at[1] + at[3];
      REQUIRE(wanted[i] == (inside ? mean[static_cast<size_t>(i / 1024)] : plain[i]));
    }
    // Ours writes the same colour to a single box.
    std::vector<float> picture(plain, plain + 3072);
    Random random(static_cast<uint64_t>(k));
    RandomErasing({.probability = 1}, mean)(picture, {3, 32, 32}, random);
    Random again(static_cast<uint64_t>(k));
    REQUIRE(again.chance(1));
    const auto box = draw_erasing_box({.probability = 1}, 32, 32, again);
    REQUIRE(box);
    for (int64_t i = 0; i < 3072; ++i) {
      const int64_t y = i / 32 % 32, x = i % 32;
      const bool inside = y >= box->top && y < box->bottom && x >= box->left && x < box->right;
      REQUIRE(picture[static_cast<size_t>(i)] == (inside ? mean[static_cast<size_t>(i / 1024)] : plain[i]));
    }
  }
}

TEST_CASE("erasing: boxes within their ranges, a quarter of the time") {
  Random random(5);
  int erased = 0;
  double smallest = 1, largest = 0, flattest = 1, tallest = 1;
  const ErasingOptions options{.probability = 0.25};
  for (int i = 0; i < 4000; ++i) {
    std::vector<float> picture(3 * 32 * 32, 0.0f);
    RandomErasing(options, {1, 2, 3})(picture, {3, 32, 32}, random);
    erased += std::count(picture.begin(), picture.end(), 0.0f) < std::ssize(picture);
    const PixelBox box = *draw_erasing_box(options, 300, 200, random);
    const double rows = static_cast<double>(box.bottom - box.top),
                 columns = static_cast<double>(box.right - box.left);
    REQUIRE((box.top >= 0 && box.left >= 0 && box.bottom <= 300 && box.right <= 200 && rows < 300 &&
             columns < 200));
    smallest = std::min(smallest, rows * columns / 60000);
    largest = std::max(largest, rows * columns / 60000);
    flattest = std::min(flattest, rows / columns);
    tallest = std::max(tallest, rows / columns);
  }
  CHECK(erased == doctest::Approx(1000).epsilon(0.1));
  CHECK((smallest > 0.019 && smallest < 0.022));  // the sides are rounded to pixels
  CHECK((largest > 0.37 && largest < 0.405));
  CHECK((flattest > 0.29 && flattest < 0.32));
  CHECK((tallest > 3.1 && tallest < 3.45));
  CHECK_FALSE(draw_erasing_box({.min_area = 1, .max_area = 1}, 8, 8, random));
  std::vector<float> noisy(3 * 64, 9.0f);
  RandomErasing({.probability = 1, .fill = ErasingOptions::Fill::noise}, {})(noisy, {3, 8, 8}, random);
  CHECK(std::set<float>(noisy.begin(), noisy.end()).size() > 3);
}

TEST_CASE("erasing: the noise is Random's, to a float's last digits, and each number is found by itself") {
  for (uint64_t skipped = 0; skipped < 9; ++skipped) {
    Random random(6, 7);
    for (uint64_t i = 0; i < skipped; ++i) random.bits();
    const Random::State from = random.state();
    Random again(from);
    for (uint64_t n = 0; n < 500; ++n) {
      const double first = random.uniform();
      const float noise = noise_of(first, random.uniform());
      REQUIRE(noise == doctest::Approx(again.normal()).epsilon(1e-6));
      REQUIRE(noise == noise_at(from, n));
    }
  }
  CHECK(noise_of(0, 0.3) == 0);
  CHECK(noise_of(1 - 0x1p-53, 0) == doctest::Approx(std::sqrt(106 * std::log(2.0))));
}

}  // namespace tessera
