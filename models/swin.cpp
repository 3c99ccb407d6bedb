#include "models/swin.h"

#include <algorithm>
#include <utility>

#include "engine/autograd/observe.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "engine/ops/take.h"
#include "models/parts/by_image.h"
#include "models/parts/frame.h"
#include "models/parts/token_layout.h"

namespace tessera {

namespace {

// The token (its raster index in the map) at every place of the windows, one window after another, once the
// map has been rolled up and left by `shift`.
std::vector<int64_t> window_order(Grid grid, int64_t window, int64_t shift) {
  std::vector<int64_t> order;
  for (int64_t top = 0; top < grid.height; top += window)
    for (int64_t left = 0; left < grid.width; left += window)
      for (int64_t y = top; y < top + window; ++y)
        for (int64_t x = left; x < left + window; ++x)
          order.push_back((y + shift) % grid.height * grid.width + (x + shift) % grid.width);
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return back;
}

// The mask of shifted windows: -100 for a pair of tokens of which rolling carried one around the border, else
// 0. It is not -inf, because LSA's diagonal mask would leave a token alone on its side nothing to attend to.
Tensor border_mask(Grid grid, int64_t window, int64_t shift, const Scope& scope) {
  const std::vector<int64_t> order = window_order(grid, window, shift);
  const auto side = [&](int64_t token) {  // rows and columns below `shift` were carried around
    return 2 * (token / grid.width < shift) + (token % grid.width < shift);
  };
  const int64_t tokens = window * window, windows = static_cast<int64_t>(order.size()) / tokens;
  std::vector<double> mask;
  for (int64_t w = 0; w < windows; ++w)
    for (int64_t i = 0; i < tokens; ++i)
      for (int64_t j = 0; j < tokens; ++j)
        mask.push_back(side(order[static_cast<size_t>(w * tokens + i)]) ==
                               side(order[static_cast<size_t>(w * tokens + j)])
                           ? 0
                           : -100);
  return Tensor::from(mask, {windows, tokens, tokens}, scope.dtype()).to(scope.device());
}

Tensor index(const std::vector<int64_t>& order) {
  return Tensor::from(order, {static_cast<int64_t>(order.size())});
}

// Where the tokens that stand in the order `to` are to be found among those in the order `from`; undefined
// for the same order.
Tensor places_in(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (from == to) return Tensor();
  const std::vector<int64_t> place = inverse(from);
  std::vector<int64_t> places;
  for (const int64_t token : to) places.push_back(place[static_cast<size_t>(token)]);
  return index(places);
}

// The tokens x at these places; x itself for an undefined index.
Tensor taken(const Tensor& x, const Tensor& places) { return places.defined() ? take(x, 1, places) : x; }

}  // namespace

Swin::WindowBlock::WindowBlock(const Scope& scope, int64_t dim, const AttentionOptions& attention,
                               Grid its_grid, Windows windows, int64_t hidden, double drop_rate, double eps,
                               std::vector<int64_t>& order)
    : grid(its_grid), drop_path(drop_rate), path(scope.path()) {
  const int64_t window = std::min({windows.size, grid.height, grid.width});
  const bool room = std::min(grid.height, grid.width) > windows.size;
  const int64_t shift = windows.shifted && room ? window / 2 : 0;
  check(grid.height % window == 0 && grid.width % window == 0, "swin: a map of ", grid.height, " x ",
        grid.width, " tokens is no whole number of windows of ", window);
  norm1 = LayerNorm(scope / "norm1", dim, eps);
  attn = Attention(scope / "attn", dim, attention, {window, window}, 0);
  norm2 = LayerNorm(scope / "norm2", dim, eps);
  mlp = Mlp(scope / "mlp", dim, hidden);
  const std::vector<int64_t> before = std::exchange(order, window_order(grid, window, shift));
  from_before = places_in(before, order);
  to_windows = index(order);
  if (shift > 0) mask = border_mask(grid, window, shift, scope);
  window_tokens = window * window;
}

Tensor Swin::WindowBlock::operator()(const Tensor& before, Pass& pass) const {
  const ModuleScope here(path);
  const TokenLayoutScope map({.grid = grid, .order = &to_windows});
  const BlockDraws draws(before, drop_path, pass);
  const Tensor x = taken(before, from_before), n = norm1(x, draws.attention.images);
  const Tensor attended = attn(n.reshape({-1, window_tokens, x.dim(2)}), {}, mask).reshape(n.shape());
  const auto [y, normed] = norm2.of_residual(x, attended, draws.attention, draws.mlp.images);
  return tessera::drop_path(y, mlp(normed), draws.mlp);
}

Swin::PatchMerging::PatchMerging(const Scope& scope, int64_t dim, Grid its_grid, double eps)
    : norm(scope / "norm", 4 * dim, eps),
      reduction(scope / "reduction", 4 * dim, 2 * dim, {.bias = false}),
      grid(its_grid) {
  check(grid.height % 2 == 0 && grid.width % 2 == 0, "swin: patch merging joins 2 x 2 tokens, the map has ",
        grid.height, " x ", grid.width);
}

Tensor Swin::PatchMerging::operator()(const Tensor& x) const {
  const int64_t images = x.dim(0), dim = x.dim(2);
  const Tensor map = x.reshape({images, grid.height / 2, 2, grid.width / 2, 2, dim});
  const Tensor joined = permute(map, {0, 1, 3, 4, 2, 5});  // by the parity of the column, then of the row
  return reduction(norm(joined.reshape({images, -1, 4 * dim})));
}

Swin::Swin(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::pytorch);
  Fields fields(config, "swin");
  const StagedFrame frame = read_staged_frame(fields, "swin", "linear", Range::at_least(0));
  const std::vector<int64_t>& depth = frame.depth;
  dims = frame.dims;
  const auto window = fields.get<int64_t>("window", 4, Range::at_least(1));
  const bool positions = fields.get("pos_embed", true);
  const auto shifted = read_pool(fields, "merge");
  fields.done();

  Grid grid = patch_grid(frame.image_size, frame.tokenizer);
  patch_embed = Tokenizer(scope / "patch_embed", frame.tokenizer, frame.in_channels, dims[0], frame.eps);
  if (positions)
    pos_embed = scope.parameter("pos_embed", {1, grid.height * grid.width, dims[0]}, truncated_normal(0.02));
  int64_t built = 0;
  for (size_t i = 0; i < depth.size(); ++i) {
    const Scope here = scope / "layers" / static_cast<int64_t>(i);
    Layer layer;
    if (i > 0 && shifted)
      layer.shifted_pool.emplace(here / "downsample", *shifted, dims[i - 1], dims[i], grid, false, frame.eps);
    else if (i > 0)
      layer.merging.emplace(here / "downsample", dims[i - 1], grid, frame.eps);
    if (i > 0) grid = {grid.height / 2, grid.width / 2};
    const std::vector<int64_t> raster = window_order(grid, 1, 0);
    std::vector<int64_t> order = raster;
    for (int64_t j = 0; j < depth[i]; ++j, ++built)
      layer.blocks.emplace_back(here / "blocks" / j, dims[i], frame.attention[i], grid,
                                Windows{window, j % 2 == 1}, frame.hidden(dims[i]),
                                frame.rates[static_cast<size_t>(built)], frame.eps, order);
    layer.to_raster = places_in(order, raster);
    layers.push_back(std::move(layer));
  }
  if (frame.num_classes == 0) return;
  norm = LayerNorm(scope / "norm", dims.back(), frame.eps);
  head = Linear(scope / "head", dims.back(), frame.num_classes);
}

Tensor Swin::features(const Tensor& image, Pass& pass, std::vector<Tensor>* maps) const {
  Tensor x = patch_embed(image);
  if (pos_embed.defined()) x = add(x, pos_embed);
  for (const Layer& layer : layers) {
    if (layer.merging) x = (*layer.merging)(x);
    if (layer.shifted_pool) x = (*layer.shifted_pool)(x);
    // A core's cache holds about 1,024 tokens and what a block makes of them.
    x = by_image(x, pass, std::max<int64_t>(1, 1024 / x.dim(1)), [&](Tensor y) {
      for (const WindowBlock& block : layer.blocks) y = block(y, pass);
      return taken(y, layer.to_raster);
    });
    const Grid grid = layer.blocks.front().grid;
    if (maps) maps->push_back(x.reshape({x.dim(0), grid.height, grid.width, x.dim(2)}));
  }
  return x;
}

Tensor Swin::operator()(const Tensor& image, Pass& pass) const {
  check(head.weight.defined(), "swin: with num_classes 0 it is a backbone, which classifies nothing");
  const Tensor x = features(image, pass);
  return head(mean(norm(x), {1}));  // [B, K]
}

namespace {

// The sizes are those of the SPT and LSA paper's code.
Json swin_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const auto [shifted, locality, shifted_pool] = modifiers_of(name);
  Json tokenizer = shifted ? shifted_options() : Json{{"kind", "patch"}, {"post_norm", true}};
  tokenizer["patch_size"] = image_size / 16;
  Json config = preset_frame("swin", image_size, num_classes);
  config.update({{"dim", 96},
                 {"depth", {2, 6, 4}},
                 {"mlp_ratio", 2.0},
                 {"drop_path", 0.1},
                 {"drop_path_rule", "linear"},
                 {"window", 4},
                 {"pos_embed", true},
                 {"tokenizer", tokenizer},
                 {"pool", shifted_pool ? shifted_options() : Json{{"kind", "merge"}}},
                 {"attention",
                  {{"heads", {3, 6, 12}},
                   {"head_dim", 32},
                   {"qkv_bias", true},
                   {"relative_bias", true},
                   {"scale", locality ? "learned" : "fixed"},
                   {"mask_diagonal", locality}}}});
  return config;
}

}  // namespace

Architecture swin_architecture() {
  return {"swin",
          Task::classify,
          make_network<Swin>,
          {"swin", "s-swin", "l-swin", "sl-swin", "sl-swin-spool"},
          swin_preset,
          16};
}

}  // namespace tessera
