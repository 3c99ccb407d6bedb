#include "models/lvvit.h"

#include <algorithm>
#include <map>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/nn/conv_norm.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "models/parts/class_token.h"

namespace tessera {

namespace {

LvVit::ConvStem::Options read_stem(Fields fields) {
  fields.choice("kind", {"conv_stem"});
  LvVit::ConvStem::Options o;
  o.patch_size = fields.get<int64_t>("patch_size", Range::at_least(2));
  if (o.patch_size % 2 != 0)
    fields.fail_at("patch_size", "is ", o.patch_size,
                   "; an even one is wanted, for the stem halves the image");
  o.channels = fields.get<int64_t>("channels", 64, Range::at_least(1));
  if (fields.has("directions")) o.directions = read_directions(fields);
  o.ratio = read_shift_ratio(fields, o.patch_size, o.directions.has_value());
  fields.done();
  return o;
}

void check_sp_layers(const Fields& fields, int64_t sp_layers, int64_t depth, bool has_prior) {
  if (sp_layers >= depth)
    fields.fail_at("sp_layers", "is ", sp_layers, " of ", depth,
                   " blocks; one at least must follow, which the class token joins");
  if ((sp_layers > 0) != has_prior)
    fields.fail_at("sp_layers", "is ", sp_layers, " and attention.prior ", has_prior ? "given" : "left out",
                   "; the prior is of the first sp_layers blocks, so they go together");
}

// The grid of the stem's tokens. A remainder of the image that fills no patch is left out, because the stem's
// convolutions leave it out.
Grid stem_grid(int64_t image_size, int64_t patch_size) {
  const int64_t side = (image_size + 1) / 2 / (patch_size / 2);
  check(side > 0 && side == image_size / patch_size, "lvvit: an image of ", image_size,
        " pixels, halved by the stem, is not cut into patches of ", patch_size, " x ", patch_size);
  return {side, side};
}

}  // namespace

LvVit::ConvStem::ConvStem(const Scope& scope, const Options& o, int64_t in_channels, int64_t dim)
    : options(o), path(scope.path()) {
  const int64_t inputs = in_channels * (o.directions ? 1 + copies(*o.directions) : 1), c = o.channels;
  const int64_t patch = o.patch_size / 2;
  conv1 = Conv2d(scope / "conv1", inputs, c, 7, {.stride = 2, .padding = 3, .bias = false});
  conv2 = Conv2d(scope / "conv2", c, c, 3, {.padding = 1, .bias = false});
  conv3 = Conv2d(scope / "conv3", c, c, 3, {.padding = 1, .bias = false});
  bn1 = BatchNorm(scope / "bn1", c);
  bn2 = BatchNorm(scope / "bn2", c);
  bn3 = BatchNorm(scope / "bn3", c);
  proj = Conv2d(scope / "proj", c, dim, patch, {.stride = patch});
}

Tensor LvVit::ConvStem::operator()(const Tensor& image, const Pass& pass) const {
  const ModuleScope here(path);
  const int64_t shift = shift_of(options.patch_size, options.ratio);
  const Tensor seen = options.directions ? shifted_copies(image, *options.directions, shift) : image;
  Tensor x = conv_norm(conv1, bn1, permute(seen, {0, 2, 3, 1}), pass, Activation::relu);  // [B, H/2, W/2, c]
  x = conv_norm(conv2, bn2, x, pass, Activation::relu);
  x = conv_norm(conv3, bn3, x, pass, Activation::relu);
  x = proj(x);
  return x.reshape({x.dim(0), x.dim(1) * x.dim(2), x.dim(3)});
}

Tensor LvVit::Layer::patches(const Tensor& x) const {
  const auto [height, width] = block.attn.grid;
  const int64_t cls = block.attn.prefix;
  return cls == 0 ? x : slice(x, 1, cls, height * width);
}

Tensor LvVit::Layer::operator()(const Tensor& x, const Tensor& omega, Pass& pass) const {
  const Tensor y = block(x, omega, pass);
  if (!pos_cnn) return y;
  const ModuleScope here(block.path);
  const Tensor tokens = patches(y);
  const Tensor map = tokens.reshape({x.dim(0), block.attn.grid.height, block.attn.grid.width, x.dim(2)});
  const Tensor placed = add(map, (*pos_cnn)(map)).reshape(tokens.shape());
  return block.attn.prefix == 0 ? placed : concat({slice(y, 1, 0, block.attn.prefix), placed}, 1);
}

LvVit::LvVit(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::truncated_normal);
  Fields fields(config, "lvvit");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"lvvit"});
  const auto image_size = fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  num_classes = fields.get<int64_t>("num_classes", Range::at_least(0));
  const auto dim = fields.get<int64_t>("dim", positive), depth = fields.get<int64_t>("depth", positive);
  const double mlp_ratio = fields.get("mlp_ratio", 3.0, Range::above(0)), eps = fields.get("norm_eps", 1e-5);
  const std::vector<double> rates = drop_rates(fields, depth, "linear");
  Fields tokenizer = fields.object("tokenizer");
  const bool convolves = tokenizer.choice("kind", {"conv_stem", "patch", "shifted"}) == "conv_stem";
  const AttentionOptions attention = read_attention(fields.object("attention"), dim);
  const double skip_lam = fields.get("skip_lam", 1.0, Range::above(0));
  const bool has_pos_cnn = fields.get("pos_cnn", false);
  sp_layers = fields.get<int64_t>("sp_layers", 0, Range::at_least(0));
  is_dense = fields.get("dense", false);
  mix_token = fields.get("mix_token", false);
  const bool has_prior = attention.prior.sharing != Sharing::none;
  check_sp_layers(fields, sp_layers, depth, has_prior);
  if (mix_token && !is_dense)
    fields.fail_at("mix_token", "needs dense: the swapped tokens are told by their own labels alone");
  fields.done();

  if (convolves) {
    const ConvStem::Options stem = read_stem(tokenizer);
    grid = stem_grid(image_size, stem.patch_size);
    conv_stem.emplace(scope / "patch_embed", stem, in_channels, dim);
  } else {
    const Tokenizer::Options options = read_tokenizer(tokenizer);
    grid = patch_grid(image_size, options);
    patch_embed = Tokenizer(scope / "patch_embed", options, in_channels, dim, eps);
  }
  cls_token = scope.parameter("cls_token", {1, 1, dim}, truncated_normal(0.02));
  pos_embed = scope.parameter("pos_embed", {1, (sp_layers == 0 ? 1 : 0) + grid.height * grid.width, dim},
                              truncated_normal(0.02));
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 0);
  AttentionOptions plain = attention;
  plain.prior = {};
  const auto hidden = static_cast<int64_t>(static_cast<double>(dim) * mlp_ratio);
  for (int64_t i = 0; i < depth; ++i) {
    const Scope here = scope / "blocks" / i;
    const bool has_cls = i >= sp_layers;
    Layer layer{Block(here, dim, has_cls ? plain : attention, grid, has_cls ? 1 : 0, hidden,
                      rates[static_cast<size_t>(i)], eps),
                {}};
    layer.block.branch_scale = 1 / skip_lam;
    if (has_pos_cnn)
      layer.pos_cnn.emplace(here / "pos_cnn", dim, dim, 3, Conv2d::Options{.padding = 1, .depthwise = true});
    blocks.push_back(std::move(layer));
  }
  if (num_classes == 0) return;
  norm = LayerNorm(scope / "norm", dim, eps);
  head = Linear(scope / "head", dim, num_classes);
  if (is_dense) aux_head.emplace(scope / "aux_head", dim, num_classes);
}

LvVit::Features LvVit::features(const Tensor& image, Pass& pass, const Tensor& inside,
                                const std::vector<int64_t>& wanted) const {
  const int64_t images = image.dim(0), dim = pos_embed.dim(2);
  Tensor x = conv_stem ? (*conv_stem)(image, pass) : patch_embed(image);  // [B, N, D]
  if (inside.defined()) x = swap_box(x, inside);
  const auto join_cls = [&] { x = with_class_token(cls_token, x); };
  if (sp_layers == 0) join_cls();
  x = add(x, pos_embed);
  const Tensor omega = prior ? (*prior)() : Tensor();
  std::vector<Tensor> maps;
  for (int64_t i = 0; i < static_cast<int64_t>(blocks.size()); ++i) {
    const Layer& layer = blocks[static_cast<size_t>(i)];
    if (i > 0 && i == sp_layers) join_cls();
    x = layer(x, i < sp_layers ? omega : Tensor(), pass);
    if (std::find(wanted.begin(), wanted.end(), i) != wanted.end())
      maps.push_back(layer.patches(x).reshape({images, grid.height, grid.width, dim}));
  }
  return {x, maps};
}

LvVit::Dense LvVit::dense(const Tensor& image, Pass& pass, const Tensor& inside) const {
  const Tensor x = norm(features(image, pass, inside).tokens);
  const Tensor logits = head(class_token_of(x));
  const Tensor aux = (*aux_head)(slice(x, 1, 1, grid.height * grid.width));
  return {logits, inside.defined() ? swap_box(aux, inside) : aux};
}

Tensor LvVit::operator()(const Tensor& image, Pass& pass) const {
  check(num_classes > 0, "lvvit: with num_classes 0 it is a backbone, which classifies nothing");
  if (is_dense) {
    const auto [logits, aux] = dense(image, pass);
    return add(logits, scale(max(aux, 1), 0.5));
  }
  const Tensor x = norm(features(image, pass).tokens);
  return head(class_token_of(x));
}

TensorMap LvVit::evaluate(const TensorMap& inputs, Pass& pass) const {
  const Tensor& image = entry(inputs, "input");
  if (!is_dense) {
    const Tensor logits = (*this)(image, pass);
    return {{"logits", logits}, {"loss", cross_entropy(logits, entry(inputs, "target"))}};
  }
  Tensor inside;
  if (mix_token) inside = mask_of(grid, to_box(entry(inputs, "box"))).to(image.dtype()).to(image.device());
  const auto [logits, aux] = dense(image, pass, inside);
  const TokenTargets targets{entry(inputs, "target"), entry(inputs, "aux_target")};
  TensorMap outputs{
      {"logits", logits}, {"aux_logits", aux}, {"loss", token_label_loss(logits, aux, targets, inside)}};
  if (!pass.training) {
    const NoRecording unrecorded;
    outputs["eval_logits"] = (*this)(image, pass);
  }
  return outputs;
}

TensorMap LvVit::draw(const TensorMap& inputs, Pass& pass) const {
  const auto given = inputs.find("box");
  if (!is_dense || !mix_token || (given == inputs.end() && !pass.drops())) return {};
  const Box box = given == inputs.end() ? draw_box(grid, pass.random) : to_box(given->second);
  return {{"inside", mask_of(grid, box)}};
}

TrainingLoss LvVit::training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const {
  const Tensor& image = entry(inputs, "input");
  if (!is_dense) {
    const Tensor logits = (*this)(image, pass);
    return {classifier_loss(logits, inputs, options), logits};
  }
  const TensorMap drawn = inputs.contains("inside") ? inputs : draw(inputs, pass);
  const auto found = drawn.find("inside");
  const Tensor inside = found == drawn.end() ? Tensor() : found->second.to(image.dtype()).to(image.device());
  const auto [logits, aux] = dense(image, pass, inside);
  const TokenTargets targets = targets_of(inputs, logits, aux.dim(1));
  return {token_label_loss(logits, aux, targets, inside, options), logits};
}

Json lvvit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  struct Size {
    int64_t dim, depth, heads;
    double skip_lam;
    int64_t stem;
    double drop_path;
    bool has_prior;  // SP-SA in all blocks but the last two, and pos_cnn in every block
  };
  static const std::map<std::string, Size> known{
      {"lvvit-t", {240, 12, 4, 1, 64, 0.1, false}}, {"lvvit-s", {384, 16, 6, 2, 64, 0.1, false}},
      {"lvvit-m", {512, 20, 8, 2, 64, 0.2, false}}, {"lvvit-l", {768, 24, 12, 3, 128, 0.3, false}},
      {"sp-vit-t", {240, 12, 4, 1, 64, 0.1, true}}, {"sp-vit-s", {384, 16, 6, 2, 64, 0.1, true}},
      {"sp-vit-m", {512, 20, 8, 2, 64, 0.2, true}}, {"sp-vit-l", {768, 24, 12, 3, 128, 0.3, true}}};
  const auto& [dim, depth, heads, skip_lam, stem, drop_path, has_prior] = known.at(name);
  Json attention{{"heads", heads},
                 {"head_dim", dim / heads},
                 {"qkv_bias", false},
                 {"scale", "fixed"},
                 {"mask_diagonal", false}};
  if (has_prior) attention["prior"] = {{"sharing", "head"}, {"hidden", dim / heads}};
  return {{"arch", "lvvit"},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"dim", dim},
          {"depth", depth},
          {"mlp_ratio", 3.0},
          {"drop_path", drop_path},
          {"drop_path_rule", "linear"},
          {"tokenizer", {{"kind", "conv_stem"}, {"patch_size", 16}, {"channels", stem}}},
          {"attention", attention},
          {"skip_lam", skip_lam},
          {"pos_cnn", has_prior},
          {"sp_layers", has_prior ? depth - 2 : 0},
          {"dense", true},
          {"mix_token", true}};
}

Architecture lvvit_architecture() {
  return {"lvvit",
          Task::classify,
          make_network<LvVit>,
          {"lvvit-t", "lvvit-s", "lvvit-m", "lvvit-l", "sp-vit-t", "sp-vit-s", "sp-vit-m", "sp-vit-l"},
          lvvit_preset};
}

}  // namespace tessera
