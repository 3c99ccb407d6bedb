#include "models/pit.h"

#include <algorithm>
#include <tuple>

#include "engine/autograd/observe.h"
#include "engine/ops/conv.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "models/parts/by_image.h"
#include "models/parts/class_token.h"
#include "models/parts/frame.h"

namespace tessera {

PiT::ConvPool::ConvPool(const Scope& scope, int64_t dim, Grid its_grid)
    : grid(its_grid),
      path(scope.path()),
      conv_path((scope / "conv").path()),
      point_path((scope / "point").path()) {
  const Scope conv = scope / "conv", point = scope / "point";
  conv_weight = conv.parameter("weight", {2 * dim, 1, 3, 3}, xavier_normal_conv());
  conv_bias = conv.parameter("bias", {2 * dim}, constant(0));
  point_weight = point.parameter("weight", {2 * dim, 2 * dim, 1, 1}, xavier_normal_conv());
  point_bias = point.parameter("bias", {2 * dim}, constant(0));
  fc = Linear(scope / "fc", dim, 2 * dim);
}

Tensor PiT::ConvPool::pooled(const Tensor& map) const {
  const auto halved = [&] {
    const ModuleScope here(conv_path);
    return depthwise_conv2d(map, conv_weight, conv_bias, {.stride = 2, .padding = 1});
  };
  const Tensor x = halved();
  const ModuleScope here(point_path);
  return conv2d(x, point_weight, point_bias).reshape({x.dim(0), -1, x.dim(3)});
}

Tensor PiT::ConvPool::operator()(const Tensor& x) const {
  const ModuleScope here(path);
  const int64_t images = x.dim(0), dim = x.dim(2), count = grid.height * grid.width;
  const Tensor map = slice(x, 1, 1, count).reshape({images, grid.height, grid.width, dim});
  const Tensor tokens = pooled(map);
  return concat({fc(first_token(x)), tokens}, 1);
}

PiT::PiT(const Json& config, const Scope& scope) {
  Fields fields(config, "pit");
  const StagedFrame frame = read_staged_frame(fields, "pit", "constant");
  const auto& [dims, depth] = std::tie(frame.dims, frame.depth);
  const auto shifted = read_pool(fields, "conv");
  fields.done();

  Grid grid = patch_grid(frame.image_size, frame.tokenizer);
  patch_embed = Tokenizer(scope / "patch_embed", frame.tokenizer, frame.in_channels, dims[0], frame.eps,
                          frame.tokenizer.shifted ? xavier_normal() : xavier_normal_conv());
  cls_token = scope.parameter("cls_token", {1, 1, dims[0]}, normal(1));
  pos_embed = scope.parameter("pos_embed", {1, 1 + grid.height * grid.width, dims[0]}, normal(1));
  int64_t built = 0;
  for (size_t i = 0; i < depth.size(); ++i) {
    const Scope here = scope / "transformers" / static_cast<int64_t>(i);
    Stage stage;
    if (i > 0 && shifted)
      stage.shifted_pool.emplace(here / "pool", *shifted, dims[i - 1], dims[i], grid, true, frame.eps);
    else if (i > 0)
      stage.conv_pool.emplace(here / "pool", dims[i - 1], grid);
    if (i > 0) grid = {(grid.height + 1) / 2, (grid.width + 1) / 2};
    for (int64_t j = 0; j < depth[i]; ++j, ++built)
      stage.blocks.emplace_back(here / "blocks" / j, dims[i], frame.attention[i], grid, 1,
                                frame.hidden(dims[i]), frame.rates[static_cast<size_t>(built)], frame.eps);
    transformers.push_back(std::move(stage));
  }
  norm = LayerNorm(scope / "norm", dims.back(), frame.eps);
  head = Linear(scope / "head", dims.back(), frame.num_classes);
}

Tensor PiT::operator()(const Tensor& image, Pass& pass) const {
  Tensor x = patch_embed(image);
  x = add(with_class_token(cls_token, x), pos_embed);  // [B, 1 + N, D]
  for (const Stage& stage : transformers) {
    if (stage.conv_pool) x = (*stage.conv_pool)(x);
    if (stage.shifted_pool) x = (*stage.shifted_pool)(x);
    const bool last = &stage == &transformers.back();
    const auto layers = [&](Tensor y) {
      if (last) return class_token_after(stage.blocks, y, {}, pass);  // [B, D]
      for (const Block& block : stage.blocks) y = block(y, {}, pass);
      return y;
    };
    // A core's cache holds about 256 tokens and what a block makes of them: an image of the first stage.
    x = wide_by_image(x, pass, std::clamp<int64_t>(256 / x.dim(1), 1, 8), layers);
  }
  return head(norm(x));  // [B, K]
}

namespace {

// The sizes are those of the SPT and LSA paper's code.
Json pit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const auto [shifted, locality, shifted_pool] = modifiers_of(name);
  Json tokenizer = shifted ? shifted_options() : Json{{"kind", "patch"}};
  tokenizer["patch_size"] = image_size / 16;
  Json config = preset_frame("pit", image_size, num_classes);
  config.update({{"dim", 96},
                 {"depth", {2, 6, 4}},
                 {"mlp_ratio", 2.0},
                 {"drop_path", 0.1},
                 {"drop_path_rule", "constant"},
                 {"tokenizer", tokenizer},
                 {"pool", shifted_pool ? shifted_options() : Json{{"kind", "conv"}}},
                 {"attention",
                  {{"heads", {2, 4, 8}},
                   {"head_dim", 48},
                   {"qkv_bias", false},
                   {"scale", locality ? "learned" : "fixed"},
                   {"mask_diagonal", locality}}}});
  return config;
}

}  // namespace

Architecture pit_architecture() {
  return {"pit",
          Task::classify,
          make_network<PiT>,
          {"pit", "s-pit", "l-pit", "sl-pit", "sl-pit-spool"},
          pit_preset,
          16};
}

}  // namespace tessera
