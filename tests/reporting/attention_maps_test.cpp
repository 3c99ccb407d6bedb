#include "apps/reporting/attention_maps.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "models/presets.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

AttentionRecord look_at(const std::string& name) {
  const Model model = build(preset(name, 32, 10), {.seed = 3});
  Tensor image = Tensor::empty({1, 3, 32, 32});
  Random random(7);
  for (int64_t i = 0; i < image.elements(); ++i) image.data<float>()[i] = static_cast<float>(random.normal());
  return record_attention(model, image);
}

double sum_of(const HeatMap& heat) { return std::accumulate(heat.values.begin(), heat.values.end(), 0.0); }

double at(const Tensor& matrix, int64_t row, int64_t column) {
  return matrix.data<double>()[row * matrix.dim(1) + column];
}

}  // namespace

TEST_CASE("every family with attention shows it as shares that sum to one") {
  struct Family {
    const char* preset;
    size_t layers;
    int64_t first_side, last_side;
  };
  for (const auto& [preset, layers, first_side, last_side] :
       {Family{"sl-vit", 9, 8, 8}, Family{"sl-pit", 12, 16, 4}, Family{"sl-swin", 12, 16, 4},
        Family{"t2t", 12, 8, 8}, Family{"cait", 26, 8, 8}, Family{"sp-vit-t", 12, 2, 2},
        Family{"rmt-xt", 14, 32, 4}, Family{"sdt-xt", 14, 32, 4}}) {
    const std::string name = preset;
    CAPTURE(name);
    const AttentionRecord record = look_at(name);
    REQUIRE(record.layers.size() == layers);
    CHECK(record.layers.front().grid().height == first_side);
    CHECK(record.layers.back().grid().width == last_side);
    for (const AttentionLayer* layer :
         {&record.layers.front(), &record.layers[layers / 2], &record.layers.back()}) {
      const Tensor a = layer->matrix(layer->heads() - 1);
      CHECK(a.dim(1) == layer->tokens());
      for (int64_t i = 0; i < a.dim(0); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < a.dim(1); ++j) sum += at(a, i, j);
        CHECK(sum == doctest::Approx(1).epsilon(1e-5));
      }
      const double share = sum_of(layer->mean_heat());  // the class token keeps the rest
      CHECK(share > 0.2);
      CHECK(share < 1 + 1e-5);
    }
    const HeatMap through = attention_rollout(record.layers);
    CHECK(through.grid.height == first_side);
    CHECK(sum_of(through) > 0.05);
    CHECK(sum_of(through) < 1 + 1e-5);
    CHECK(*std::min_element(through.values.begin(), through.values.end()) >= 0);
  }
}

TEST_CASE("the windows of Swin lie where its tokens do") {
  const AttentionRecord record =
      look_at("swin");  // 16 x 16 tokens in windows of 4, every other layer moved by 2
  const auto inside = [&](const AttentionLayer& layer, int64_t y, int64_t x, int64_t top, int64_t left) {
    const Tensor a = layer.matrix(0);
    double sum = 0;
    for (int64_t row = top; row < top + 4; ++row)
      for (int64_t column = left; column < left + 4; ++column) sum += at(a, y * 16 + x, row * 16 + column);
    return sum;
  };
  CHECK(inside(record.layers[0], 0, 0, 0, 0) == doctest::Approx(1).epsilon(1e-5));
  CHECK(inside(record.layers[0], 5, 14, 4, 12) == doctest::Approx(1).epsilon(1e-5));
  CHECK(inside(record.layers[1], 5, 9, 2, 6) == doctest::Approx(1).epsilon(1e-5));
  CHECK(inside(record.layers[1], 5, 9, 4, 8) < 0.9);
}

TEST_CASE("rows and columns of a decomposed attention multiply") {
  const Grid grid{2, 3};
  const Tensor rows = Tensor::from({1, 0, 0, 0.5, 0.5, 0, 0, 0, 1,  //
                                    0, 1, 0, 0, 0, 1, 0.25, 0.25, 0.5},
                                   {2, 1, 3, 3}, DType::f64);
  const Tensor columns = Tensor::from({0.5, 0.5, 0, 1,    //
                                       0.75, 0.25, 1, 0,  //
                                       0, 1, 0.5, 0.5},
                                      {3, 1, 2, 2}, DType::f64);
  AttentionLayer layer("attn", AttentionLayer::Part({.grid = grid}, rows));
  layer.add(AttentionLayer::Part({.grid = grid, .columns = true}, columns));
  const Tensor a = layer.matrix(0);
  // Token (y, x) sees (y', x') by column x from y to y', then by row y' from x to x'.
  CHECK(at(a, 0, 0) == 0.5 * 1);     // (0,0) -> (0,0)
  CHECK(at(a, 0, 4) == 0.5 * 1);     // (0,0) -> (1,1): down half, then row 1 from 0 to 1
  CHECK(at(a, 1, 0) == 0.75 * 0.5);  // (0,1) -> (0,0)
  CHECK(at(a, 1, 5) == 0.25 * 1);    // (0,1) -> (1,2)
  CHECK(at(a, 2, 3) == 1 * 0.25);    // (0,2) -> (1,0)
  CHECK(at(a, 5, 2) == 0.5 * 1);     // (1,2) -> (0,2)
  CHECK(at(a, 5, 5) == 0.5 * 0.5);   // (1,2) -> (1,2)
  CHECK(layer.mean_heat().values[5] == doctest::Approx((0 + 0.25 + 1 * 0.5 + 1 * 0 + 0 + 0.25) / 6));
}

TEST_CASE("a model without attention is refused by name") {
  CHECK_THROWS_WITH_AS(look_at("resnet56"), doctest::Contains("arch 'resnet' has no attention to show"),
                       Error);
}
