#include "models/pit.h"

#include <map>
#include <numeric>

#include "engine/autograd/observe.h"
#include "engine/ops/conv.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "models/parts/stages.h"

namespace tessera {

PiT::ConvPool::ConvPool(const Scope& scope, int64_t dim, Grid its_grid) : grid(its_grid), path(scope.path()) {
  const Scope conv = scope / "conv", point = scope / "point";
  conv_weight = conv.parameter("weight", {2 * dim, 1, 3, 3}, xavier_normal_conv());
  conv_bias = conv.parameter("bias", {2 * dim}, constant(0));
  point_weight = point.parameter("weight", {2 * dim, 2 * dim, 1, 1}, xavier_normal_conv());
  point_bias = point.parameter("bias", {2 * dim}, constant(0));
  fc = Linear(scope / "fc", dim, 2 * dim);
}

Tensor PiT::ConvPool::operator()(const Tensor& x) const {
  const Inside here(path);
  const int64_t images = x.dim(0), dim = x.dim(2), count = grid.height * grid.width;
  const Tensor map = slice(x, 1, 1, count).reshape({images, grid.height, grid.width, dim});
  const Tensor halved = depthwise_conv2d(map, conv_weight, conv_bias, {.stride = 2, .padding = 1});
  const Tensor tokens = conv2d(halved, point_weight, point_bias).reshape({images, -1, 2 * dim});
  return concat({fc(slice(x, 1, 0, 1)), tokens}, 1);
}

PiT::PiT(const Json& config, const Scope& scope) {
  Fields fields(config, "pit");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"pit"});
  const auto image_size = fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto num_classes = fields.get<int64_t>("num_classes", positive);
  const auto first_dim = fields.get<int64_t>("dim", positive);
  const auto depth = fields.get<std::vector<int64_t>>("depth", positive);
  const double mlp_ratio = fields.get("mlp_ratio", 2.0, Range::above(0)), eps = fields.get("norm_eps", 1e-5);
  const int64_t blocks = std::accumulate(depth.begin(), depth.end(), int64_t{0});
  const std::vector<double> rates = drop_rates(fields, blocks, "constant");
  const Tokenizer::Options tokenizer = read_tokenizer(fields.object("tokenizer"));
  std::vector<int64_t> dims;
  for (size_t i = 0; i < depth.size(); ++i) dims.push_back(first_dim << i);
  const std::vector<AttentionOptions> attention = read_staged_attention(fields, dims);
  const auto shifted = read_pool(fields, "conv");
  fields.done();
  check(!depth.empty(), "pit: depth is an empty list, a stage at least is wanted");
  for (const AttentionOptions& o : attention)
    check(o.prior.sharing != Sharing::model,
          "pit: the stages' grids differ, so a prior cannot be shared by the model; ",
          "share it by head or layer");

  Grid grid = patch_grid(image_size, tokenizer.patch_size);
  patch_embed = Tokenizer(scope / "patch_embed", tokenizer, in_channels, first_dim, eps,
                          tokenizer.shifted ? xavier_normal() : xavier_normal_conv());
  cls_token = scope.parameter("cls_token", {1, 1, first_dim}, normal(1));
  pos_embed = scope.parameter("pos_embed", {1, 1 + grid.height * grid.width, first_dim}, normal(1));
  int64_t built = 0;
  for (size_t i = 0; i < depth.size(); ++i) {
    const Scope here = scope / "transformers" / static_cast<int64_t>(i);
    Stage stage;
    if (i > 0 && shifted)
      stage.shifted_pool.emplace(here / "pool", *shifted, dims[i - 1], dims[i], grid, true, eps);
    else if (i > 0)
      stage.conv_pool.emplace(here / "pool", dims[i - 1], grid);
    if (i > 0) grid = {(grid.height + 1) / 2, (grid.width + 1) / 2};
    const auto hidden = static_cast<int64_t>(static_cast<double>(dims[i]) * mlp_ratio);
    for (int64_t j = 0; j < depth[i]; ++j, ++built)
      stage.blocks.emplace_back(here / "blocks" / j, dims[i], attention[i], grid, 1, hidden,
                                rates[static_cast<size_t>(built)], eps);
    transformers.push_back(std::move(stage));
  }
  norm = LayerNorm(scope / "norm", dims.back(), eps);
  head = Linear(scope / "head", dims.back(), num_classes);
}

Tensor PiT::operator()(const Tensor& image, Pass& pass) const {
  const int64_t images = image.dim(0), dim = pos_embed.dim(2);
  Tensor x = patch_embed(image);
  x = add(concat({broadcast_to(cls_token, {images, 1, dim}), x}, 1), pos_embed);  // [B, 1 + N, D]
  for (const Stage& stage : transformers) {
    if (stage.conv_pool) x = (*stage.conv_pool)(x);
    if (stage.shifted_pool) x = (*stage.shifted_pool)(x);
    for (const Block& block : stage.blocks) x = block(x, {}, pass);
  }
  return head(norm(slice(x, 1, 0, 1).reshape({images, x.dim(2)})));  // [B, K]
}

Json pit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  struct Modifiers {
    bool shifted, locality, shifted_pool;
  };
  static const std::map<std::string, Modifiers> known{{"pit", {false, false, false}},
                                                      {"s-pit", {true, false, false}},
                                                      {"l-pit", {false, true, false}},
                                                      {"sl-pit", {true, true, false}},
                                                      {"sl-pit-spool", {true, true, true}}};
  const auto found = known.find(name);
  if (found == known.end()) return {};
  const auto [shifted, locality, shifted_pool] = found->second;
  const Json spt{{"kind", "shifted"}, {"directions", "diagonal"}, {"ratio", 0.5}};
  Json tokenizer = shifted ? spt : Json{{"kind", "patch"}};
  tokenizer["patch_size"] = image_size / 16;
  return {{"arch", "pit"},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"dim", 96},
          {"depth", {2, 6, 4}},
          {"mlp_ratio", 2.0},
          {"drop_path", 0.1},
          {"drop_path_rule", "constant"},
          {"tokenizer", tokenizer},
          {"pool", shifted_pool ? spt : Json{{"kind", "conv"}}},
          {"attention",
           {{"heads", {2, 4, 8}},
            {"head_dim", 48},
            {"qkv_bias", false},
            {"scale", locality ? "learned" : "fixed"},
            {"mask_diagonal", locality}}}};
}

}  // namespace tessera
