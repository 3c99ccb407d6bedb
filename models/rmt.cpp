#include "models/rmt.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/nn/conv_norm.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/reduce.h"
#include "engine/ops/rotary.h"
#include "engine/ops/shape.h"
#include "models/parts/by_image.h"
#include "models/parts/stages.h"
#include "models/parts/token_layout.h"

namespace tessera {

namespace {

constexpr double block_eps = 1e-6;
// Fewer would leave too few rows to a product in the last stages, which have a few tokens an image.
constexpr int64_t images_at_a_time = 8;

Grid after_conv(Grid grid, int64_t stride) {  // 3 x 3, padding 1
  return {(grid.height - 1) / stride + 1, (grid.width - 1) / stride + 1};
}

Conv2d depthwise(const Scope& scope, int64_t dim, int64_t kernel) {
  return Conv2d(scope, dim, dim, kernel, {.padding = kernel / 2, .depthwise = true});
}

// Convolves tokens as a map. [B, h w, D] -> [B, h' w', D']
Tensor on_map(const Conv2d& conv, const Tensor& x, Grid grid) {
  const Tensor y = conv(x.reshape({x.dim(0), grid.height, grid.width, x.dim(2)}));
  return y.reshape({x.dim(0), -1, y.dim(3)});
}

std::vector<RMT::StageAttention> read_attention_of_stages(Fields& fields, const std::vector<int64_t>& dims) {
  const Json* attention = fields.find("attention");
  if (!attention || !attention->is_object()) fields.object("attention");  // fails with its own message
  std::vector<RMT::StageAttention> stages;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Json own = staged_attention_options(*attention, i, dims.size());
    Fields its(own, fields.where(), "attention");
    RMT::StageAttention stage;
    stage.decomposed = its.get("decomposed", false);
    stage.rope = its.get("rope", true);
    stage.lepe = its.get<int64_t>("lepe", 5, Range::at_least(0));
    stage.scores = read_attention(its, dims[i]);
    stage.scores.qkv_bias = its.get("qkv_bias", true);  // read anew: other architectures default to false
    if (!its.has("head_dim") && dims[i] % stage.scores.heads != 0)
      its.fail_at("heads", "is ", stage.scores.heads, ", which does not divide the width ", dims[i],
                  " of stage ", i, "; give head_dim");
    stages.push_back(stage);
  }
  return stages;
}

void check_attention(const RMT::StageAttention& o, Grid grid, const std::string& where) {
  check(!o.rope || o.scores.head_dim % 2 == 0, where, ": rope turns pairs of channels, heads of ",
        o.scores.head_dim, " have no whole number of them; choose other heads or rope false");
  check(o.lepe == 0 || o.lepe % 2 == 1, where, ": lepe is ", o.lepe,
        ", an odd kernel keeps the map's size, and 0 leaves it out");
  check(o.scores.prior.sharing != Sharing::model, where,
        ": the stages' grids differ, so a prior cannot be shared by the model; share it by head or layer");
  const int64_t fewest = o.decomposed ? std::min(grid.height, grid.width) : grid.height * grid.width;
  check(!o.scores.mask_diagonal || fewest > 1, where, ": on a grid of ", grid.height, " x ", grid.width,
        o.decomposed ? " a line" : "",
        " has a single token, which mask_diagonal leaves nothing to attend to; give it a value a stage");
}

}  // namespace

RMT::ConvStem::ConvStem(const Scope& scope, Fields options, int64_t in_channels, int64_t dim,
                        int64_t image_size)
    : grid{image_size, image_size}, path(scope.path()) {
  options.choice("kind", {"conv_stem"});
  const auto strides = options.get<std::vector<int64_t>>("strides", {2, 1, 2, 1}, Range::at_least(1));
  if (strides.size() != 4) options.fail_at("strides", "has ", strides.size(), " values for 4 convolutions");
  check(dim >= 2, "rmt: the stem's first convolutions have half the width of dim, ", dim);
  if (options.has("directions")) directions = read_directions(options);
  const int64_t patch = std::accumulate(strides.begin(), strides.end(), int64_t{1}, std::multiplies<>());
  shift = shift_of(patch, read_shift_ratio(options, patch, directions.has_value()));
  options.done();
  if (directions) in_channels *= 1 + copies(*directions);
  int64_t width = in_channels;
  for (size_t k = 0; k < strides.size(); ++k) {
    const int64_t out = k < 2 ? dim / 2 : dim;
    convs.emplace_back(scope / "convs" / static_cast<int64_t>(k), width, out, 3,
                       Conv2d::Options{.stride = strides[k], .padding = 1});
    norms.emplace_back(scope / "norms" / static_cast<int64_t>(k), out);
    grid = after_conv(grid, strides[k]);
    width = out;
  }
}

Tensor RMT::ConvStem::operator()(const Tensor& image, const Pass& pass) const {
  const ModuleScope here(path);
  Tensor x = directions ? shifted_copies(image, *directions, shift) : image;
  x = permute(x, {0, 2, 3, 1});  // [B, H, W, C]
  for (size_t k = 0; k < convs.size(); ++k)
    x = conv_norm(convs[k], norms[k], x, pass, k + 1 < convs.size() ? Activation::gelu : Activation::none);
  return x.reshape({x.dim(0), -1, x.dim(3)});
}

RMT::DecayAttention::DecayAttention(const Scope& scope, int64_t dim, const StageAttention& o, Grid grid)
    : attention(scope, dim, o.scores, grid, 0), decomposed(o.decomposed) {
  if (o.lepe > 0) lepe = depthwise(scope / "lepe", o.scores.heads * o.scores.head_dim, o.lepe);
  if (o.rope)
    turns =
        turns_of(raster_angles(grid.height * grid.width, o.scores.head_dim), scope.dtype(), scope.device());
}

// q, k and v, each a third of the projection's rows. Rotation and lines need the three apart, and slicing the
// weight is cheaper than slicing its output; a tape that keeps everything sees the output whole. Where nobody
// looks, the CPU's kernels take views instead of slices, and so may keep what they make of a frozen weight.
// On a GPU slices stay, because its kernels want aligned rows.
std::array<Tensor, 3> RMT::DecayAttention::projected(const Tensor& x) const {
  const Linear& qkv = attention.qkv;
  const int64_t width = qkv.weight.dim(0) / 3;
  if (tape_keeps_all()) {
    const Tensor packed = qkv(x);
    const auto third = [&](int64_t part) { return slice(packed, 2, part * width, width); };
    return {third(0), third(1), third(2)};
  }
  const ModuleScope here(qkv.path);
  const bool by_views = !ops_are_seen() && x.device() == Device::cpu;
  const auto rows = [&](const Tensor& all, int64_t part) {
    if (!all.defined()) return Tensor();
    return by_views ? all.rows(part * width, width) : slice(all, 0, part * width, width);
  };
  const auto third = [&](int64_t part) { return linear(x, rows(qkv.weight, part), rows(qkv.bias, part)); };
  return {third(0), third(1), third(2)};
}

Tensor RMT::DecayAttention::operator()(const Tensor& x) const {
  const ModuleScope here(attention.path);
  auto [q, k, v] = projected(x);
  if (turns.defined()) {
    q = rotary(q, turns);
    k = rotary(k, turns);
  }
  Tensor y =
      decomposed ? within(Lines::columns, x, q, k, within(Lines::rows, x, q, k, v)) : over_all(x, q, k, v);
  if (lepe) y = add(y, on_map(*lepe, v, attention.grid));
  return attention.proj(y);
}

Tensor RMT::DecayAttention::over_all(const Tensor& x, const Tensor& q, const Tensor& k,
                                     const Tensor& v) const {
  const TokenLayoutScope map({.grid = attention.grid});
  return attend(q, k, v, attention.options.heads, attention.terms(x, Tensor()));
}

Tensor RMT::DecayAttention::within(Lines lines, const Tensor& x, const Tensor& q, const Tensor& k,
                                   const Tensor& v) const {
  const Grid grid = attention.grid;
  const TokenLayoutScope map({.grid = grid, .columns = lines == Lines::columns});
  const Tensor y = attend(by_line(q, grid, lines), by_line(k, grid, lines), by_line(v, grid, lines),
                          attention.options.heads, attention.terms(x, lines));
  return from_lines(y, grid, lines);
}

RMT::ConvMlp::ConvMlp(const Scope& scope, int64_t dim, int64_t hidden, Grid its_grid)
    : fc1(scope / "fc1", dim, hidden),
      fc2(scope / "fc2", hidden, dim),
      dwconv(depthwise(scope / "dwconv", hidden, 3)),
      grid(its_grid),
      path(scope.path()) {}

Tensor RMT::ConvMlp::operator()(const Tensor& x) const {
  const ModuleScope here(path);
  const Tensor h = fc1(x, Activation::gelu);
  return fc2(add(h, on_map(dwconv, h, grid)));
}

RMT::LayerScale::LayerScale(const Scope& scope, int64_t dim, double initial)
    : gamma(scope.parameter("gamma", {dim}, constant(initial))), path(scope.path()) {}

Tensor RMT::LayerScale::operator()(const Tensor& x) const {
  if (!gamma.defined()) return x;
  const ModuleScope here(path);
  return multiply(x, gamma);
}

RMT::Block::Block(const Scope& scope, int64_t dim, const StageAttention& attention, Grid its_grid,
                  int64_t hidden, double layer_scale, double drop_rate)
    : pos(depthwise(scope / "pos", dim, 3)),
      norm1(scope / "norm1", dim, block_eps),
      attn(scope / "attn", dim, attention, its_grid),
      norm2(scope / "norm2", dim, block_eps),
      mlp(scope / "mlp", dim, hidden, its_grid),
      drop_path(drop_rate),
      grid(its_grid),
      path(scope.path()) {
  if (layer_scale == 0) return;
  ls1 = LayerScale(scope / "ls1", dim, layer_scale);
  ls2 = LayerScale(scope / "ls2", dim, layer_scale);
}

Tensor RMT::Block::operator()(const Tensor& x, Pass& pass) const {
  const ModuleScope here(path);
  const Tensor placed = add(x, on_map(pos, x, grid));
  const BlockDraws draws(placed, drop_path, pass);
  const Tensor attended = ls1(attn(norm1(placed, draws.attention.images)));
  const auto [y, normed] = norm2.of_residual(placed, attended, draws.attention, draws.mlp.images);
  return tessera::drop_path(y, ls2(mlp(normed)), draws.mlp);
}

RMT::Downsample::Downsample(const Scope& scope, int64_t dim, int64_t dim_out, Grid its_grid)
    : reduction(scope / "reduction", dim, dim_out, 3, {.stride = 2, .padding = 1}),
      norm(scope / "norm", dim_out),
      grid(its_grid),
      path(scope.path()) {}

Tensor RMT::Downsample::operator()(const Tensor& x, const Pass& pass) const {
  const ModuleScope here(path);
  return norm(on_map(reduction, x, grid), pass);
}

RMT::RMT(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::truncated_normal);
  const Range positive = Range::at_least(1);
  Fields fields(config, config.at("arch").get<std::string>());
  fields.choice("arch", {"rmt", "sdt"});
  const auto image_size = fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto num_classes = fields.get<int64_t>("num_classes", Range::at_least(0));
  const auto dim = fields.get<std::vector<int64_t>>("dim", positive);
  const auto depth = fields.get<std::vector<int64_t>>("depth", positive);
  const auto mlp_ratio = fields.get<std::vector<double>>("mlp_ratio", Range::above(0));
  const auto layer_scale = fields.get("layer_scale", std::vector<double>(dim.size(), 0.0));
  const auto proj_dim = fields.get<int64_t>("proj_dim", 1024, positive);
  const std::vector<double> rates =
      drop_rates(fields, std::accumulate(depth.begin(), depth.end(), int64_t{0}), "linear");
  const std::vector<StageAttention> attention = read_attention_of_stages(fields, dim);
  Fields tokenizer = fields.object("tokenizer");
  fields.done();
  check(!dim.empty() && depth.size() == dim.size() && mlp_ratio.size() == dim.size() &&
            layer_scale.size() == dim.size(),
        fields.where(), ": dim, depth, mlp_ratio and layer_scale have ", dim.size(), ", ", depth.size(), ", ",
        mlp_ratio.size(), " and ", layer_scale.size(), " values; each wants one a stage");

  Grid grid;
  if (tokenizer.choice("kind", {"conv_stem", "patch", "shifted"}) == "conv_stem") {
    stem.emplace(scope / "patch_embed", tokenizer, in_channels, dim[0], image_size);
    grid = stem->grid;
  } else {
    const Tokenizer::Options options = read_tokenizer(tokenizer);
    tokens.emplace(scope / "patch_embed", options, in_channels, dim[0], block_eps);
    grid = patch_grid(image_size, options);
  }
  size_t built = 0;
  for (size_t i = 0; i < dim.size(); ++i) {
    const Scope here = scope / "layers" / static_cast<int64_t>(i);
    check_attention(attention[i], grid, fields.where() + ": attention of stage " + std::to_string(i));
    const auto hidden = static_cast<int64_t>(static_cast<double>(dim[i]) * mlp_ratio[i]);
    Layer layer;
    for (int64_t j = 0; j < depth[i]; ++j, ++built)
      layer.blocks.emplace_back(here / "blocks" / j, dim[i], attention[i], grid, hidden, layer_scale[i],
                                rates[built]);
    if (i + 1 < dim.size()) layer.downsample.emplace(here / "downsample", dim[i], dim[i + 1], grid);
    layers.push_back(std::move(layer));
    grid = after_conv(grid, 2);
  }
  dims = dim;
  if (num_classes == 0) return;
  proj = Linear(scope / "proj", dim.back(), proj_dim);
  norm = BatchNorm(scope / "norm", proj_dim);
  head = Linear(scope / "head", proj_dim, num_classes);
}

Tensor RMT::features(const Tensor& image, Pass& pass, std::vector<Tensor>* maps) const {
  Tensor x = stem ? (*stem)(image, pass) : (*tokens)(image);
  for (const Layer& layer : layers) {
    x = by_image(x, pass, images_at_a_time, [&](Tensor y) {
      for (const Block& block : layer.blocks) y = block(y, pass);
      return y;
    });
    const Grid grid = layer.blocks.front().grid;
    if (maps) maps->push_back(x.reshape({x.dim(0), grid.height, grid.width, x.dim(2)}));
    if (layer.downsample) x = (*layer.downsample)(x, pass);
  }
  return x;
}

Tensor RMT::operator()(const Tensor& image, Pass& pass) const {
  check(head.weight.defined(), "rmt: with num_classes 0 it is a backbone, which classifies nothing");
  const Tensor x = features(image, pass);
  return head(mean(norm(proj(x), pass, Activation::silu), {1}));  // [B, K]
}

}  // namespace tessera
