#include "models/cait.h"

#include <cmath>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"
#include "engine/ops/take.h"
#include "models/parts/frame.h"
#include "models/parts/token_layout.h"

namespace tessera {

namespace {

// The initial layer scale of layer `number`, counted from 1; class layers are counted from 1 again.
double layer_scale_start(int64_t number) { return number <= 18 ? 0.1 : number <= 24 ? 1e-5 : 1e-6; }

// Xavier initialisation of q (the first `inner` rows) and of k and v (the others) as two separate linear
// maps, as in the paper's code, which changes their fan_out.
Init xavier_q_and_kv(int64_t inner) {
  return [inner](const Tensor& weight, Random& random) {
    const int64_t rest = weight.dim(0) - inner;
    const Tensor q = weight.rows(0, inner), kv = weight.rows(inner, rest);
    xavier_normal()(q, random);
    if (rest > 0) xavier_normal()(kv, random);
  };
}

// Xavier initialisation of k or v of a class layer, each being half of one linear map with 2 inner rows.
Init xavier_half() {
  return [](const Tensor& weight, Random& random) {
    normal(std::sqrt(2.0 / static_cast<double>(2 * weight.dim(0) + weight.dim(1))))(weight, random);
  };
}

// Mixes heads [B, H, N, M] by a matrix [H, H], as the module `path`.
Tensor mix_heads(const Tensor& mixing, const Tensor& heads, const std::string& path) {
  const ModuleScope here(path);
  const Tensor flat = heads.reshape({heads.dim(0), heads.dim(1), -1});
  return matmul(mixing, flat).reshape(heads.shape());
}

CaiT::MaskFill read_fill(const Json& config, Json& attention) {
  attention = config.at("attention");
  if (!attention.contains("mask_fill")) return CaiT::MaskFill::infinity;
  Json only{{"mask_fill", attention.at("mask_fill")}};
  attention.erase("mask_fill");
  const std::string fill = Fields(only, "cait", "attention").choice("mask_fill", {"-inf", "zero"}, "-inf");
  return fill == "zero" ? CaiT::MaskFill::zero : CaiT::MaskFill::infinity;
}

}  // namespace

CaiT::Talk::Talk(const Scope& scope, int64_t heads)
    : proj_l((scope / "proj_l").parameter("weight", {heads, heads}, normal(1))),
      proj_w((scope / "proj_w").parameter("weight", {heads, heads}, normal(1))),
      path(scope.path()),
      path_l((scope / "proj_l").path()),
      path_w((scope / "proj_w").path()) {}

Tensor CaiT::Talk::operator()(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreTerms& terms,
                              MaskFill diagonal) const {
  name_value(q, "q");
  name_value(k, "k");
  name_value(v, "v");
  Tensor s = matmul(q, k, false, true);  // [B, H, N, M]
  s = apply_terms(s, proj_l.dim(0), terms);
  if (diagonal == MaskFill::zero) s = mask_diagonal(s, 0);
  name_value(s, "unmixed_scores");
  s = mix_heads(proj_l, s, path_l);
  if (diagonal == MaskFill::infinity) s = mask_diagonal(s);
  // What the softmax reads is the module's own value, in the shape of heads, even where it is proj_l's
  // output.
  if (diagonal != MaskFill::infinity && tape_keeps_all()) s = scale(s, 1);
  name_value(s, "scores");
  const Tensor p = softmax(s);
  name_value(p, "probabilities");
  return merge_heads(matmul(mix_heads(proj_w, p, path_w), v));
}

CaiT::ClassAttention::ClassAttention(const Scope& scope, int64_t dim, const AttentionOptions& o) {
  const int64_t inner = o.heads * o.head_dim;
  q = Linear(scope / "q", dim, inner, {.bias = o.qkv_bias});
  k = Linear(scope / "k", dim, inner, {.bias = o.qkv_bias, .weight_init = xavier_half()});
  v = Linear(scope / "v", dim, inner, {.bias = o.qkv_bias, .weight_init = xavier_half()});
  proj = Linear(scope / "proj", inner, dim);
  if (o.learned_scale) scale = scope.parameter("scale", {o.heads}, constant(o.scale_of(o.head_dim)));
}

CaiT::Layer CaiT::layer(const Scope& scope, int64_t dim, int64_t hidden, int64_t number, double rate,
                        double eps) const {
  Layer layer;
  layer.norm1 = LayerNorm(scope / "norm1", dim, eps);
  layer.talk = Talk(scope / "attn", attention.heads);
  layer.gamma_1 = scope.parameter("gamma_1", {dim}, constant(layer_scale_start(number)));
  layer.norm2 = LayerNorm(scope / "norm2", dim, eps);
  layer.mlp = Mlp(scope / "mlp", dim, hidden);
  layer.gamma_2 = scope.parameter("gamma_2", {dim}, constant(layer_scale_start(number)));
  layer.drop_path = rate;
  layer.path = scope.path();
  return layer;
}

CaiT::CaiT(const Json& config, const Scope& scope) {
  Fields fields(config, "cait");
  const Frame frame = read_frame(fields, "cait");
  const auto dim = fields.get<int64_t>("dim", Range::at_least(1)),
             depth = fields.get<int64_t>("depth", Range::at_least(1));
  const auto class_depth = fields.get<int64_t>("class_depth", 2, Range::at_least(1));
  const std::vector<double> rates = drop_rates(fields, depth + class_depth, "constant");
  const Tokenizer::Options tokenizer = read_tokenizer(fields.object("tokenizer"));
  fields.object("attention");
  Json of_attention;
  const MaskFill wanted = read_fill(config, of_attention);
  attention = read_attention(Fields(of_attention, "cait", "attention"), dim);
  fields.done();
  attention.qkv_init = xavier_q_and_kv(attention.heads * attention.head_dim);
  fill = attention.mask_diagonal ? wanted : MaskFill::none;

  const Grid grid = patch_grid(frame.image_size, tokenizer);
  patch_embed = Tokenizer(scope / "patch_embed", tokenizer, frame.in_channels, dim, frame.eps);
  pos_embed = scope.parameter("pos_embed", {1, grid.height * grid.width, dim}, normal(1));
  cls_token = scope.parameter("cls_token", {1, 1, dim}, normal(1));
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 0);
  const auto rate = [&](int64_t i) { return rates[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < depth; ++i) {
    const Scope here = scope / "blocks" / i;
    blocks.push_back(layer(here, dim, frame.hidden(dim), i + 1, rate(i), frame.eps));
    blocks.back().attn = Attention(here / "attn", dim, attention, grid, 0);
  }
  for (int64_t i = 0; i < class_depth; ++i) {
    const Scope here = scope / "blocks_token_only" / i;
    blocks_token_only.push_back(layer(here, dim, frame.hidden(dim), i + 1, rate(depth + i), frame.eps));
    blocks_token_only.back().class_attn.emplace(here / "attn", dim, attention);
  }
  norm = LayerNorm(scope / "norm", dim, frame.eps);
  head = Linear(scope / "head", dim, frame.num_classes);
}

Tensor CaiT::after_attention(const Layer& layer, const Tensor& x, const Tensor& attended,
                             const BlockDraws& draws) const {
  const auto [y, normed] =
      layer.norm2.of_residual(x, multiply(attended, layer.gamma_1), draws.attention, draws.mlp.images);
  return drop_path(y, multiply(layer.mlp(normed), layer.gamma_2), draws.mlp);
}

Tensor CaiT::patch_layer(const Layer& layer, const Tensor& x, const Tensor& omega, Pass& pass) const {
  const ModuleScope here(layer.path);
  const TokenLayoutScope map({.grid = layer.attn.grid});
  const BlockDraws draws(x, layer.drop_path, pass);
  const Tensor normed = layer.norm1(x, draws.attention.images);
  return after_attention(layer, x, patch_attention(layer, normed, omega), draws);
}

Tensor CaiT::patch_attention(const Layer& layer, const Tensor& normed, const Tensor& omega) const {
  const ModuleScope here(layer.attn.path);
  const Tensor qkv = layer.attn.qkv(normed);
  ScoreTerms terms = layer.attn.terms(normed, omega);
  terms.mask_diagonal = false;  // Talk masks, before or after the mixing as `fill` says
  const auto part = [&](int64_t i) { return split_heads(qkv, attention.heads, i, 3); };
  const Tensor q = part(0), k = part(1), v = part(2);
  return layer.attn.proj(layer.talk(q, k, v, terms, fill));
}

Tensor CaiT::class_layer(const Layer& layer, const Tensor& cls, const Tensor& x, Pass& pass) const {
  const ModuleScope here(layer.path);
  const TokenLayoutScope map({.grid = blocks.front().attn.grid});
  const BlockDraws draws(cls, layer.drop_path, pass);
  const Tensor& images = draws.attention.images;
  const Tensor normed = layer.norm1(cls, images), its_x = images.defined() ? take(x, 0, images) : x;
  return after_attention(layer, cls, class_attention(layer, normed, its_x), draws);
}

Tensor CaiT::class_attention(const Layer& layer, const Tensor& normed, const Tensor& x) const {
  const ModuleScope here(layer.talk.path);
  const ClassAttention& attn = *layer.class_attn;
  ScoreTerms terms;
  terms.scale = attention.scale_of(attention.head_dim);
  terms.learned_scale = attn.scale;
  const auto split = [&](const Tensor& t) { return split_heads(t, attention.heads); };
  const Tensor q = split(attn.q(normed)), k = split(attn.k(x)), v = split(attn.v(x));
  return attn.proj(layer.talk(q, k, v, terms, MaskFill::none));
}

Tensor CaiT::operator()(const Tensor& image, Pass& pass) const {
  const Tensor omega = prior ? (*prior)() : Tensor();
  Tensor x = add(patch_embed(image), pos_embed);  // [B, N, D]
  for (const Layer& layer : blocks) x = patch_layer(layer, x, omega, pass);
  Tensor cls = broadcast_to(cls_token, {x.dim(0), 1, x.dim(2)});
  for (const Layer& layer : blocks_token_only) cls = class_layer(layer, cls, x, pass);
  return head(norm(cls.reshape({x.dim(0), x.dim(2)})));  // [B, K]
}

namespace {

// The sizes are those of the SPT and LSA paper's code.
Json cait_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const Modifiers modifiers = modifiers_of(name);
  const bool shifted = modifiers.shifted, locality = modifiers.locality;
  Json tokenizer = shifted ? shifted_options() : Json{{"kind", "patch"}};
  tokenizer["patch_size"] = image_size / 8;
  Json attention{{"heads", 4},
                 {"head_dim", 64},
                 {"qkv_bias", false},
                 {"scale", locality ? "learned" : "fixed"},
                 {"mask_diagonal", locality}};
  if (locality) attention["mask_fill"] = "zero";
  Json config = preset_frame("cait", image_size, num_classes);
  config.update({{"dim", 192},
                 {"depth", 24},
                 {"class_depth", 2},
                 {"mlp_ratio", 2.0},
                 {"drop_path", 0.1},
                 {"drop_path_rule", "constant"},
                 {"tokenizer", tokenizer},
                 {"attention", attention}});
  return config;
}

}  // namespace

Architecture cait_architecture() {
  return {"cait", Task::classify, make_network<CaiT>, {"cait", "s-cait", "l-cait", "sl-cait"}, cait_preset,
          8};
}

}  // namespace tessera
