#include "models/t2t.h"

#include <cmath>

#include "engine/autograd/observe.h"
#include "engine/ops/conv.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "models/parts/class_token.h"
#include "models/parts/frame.h"

namespace tessera {

namespace {

// The fixed position table: sin(t / 10000^(2 floor(c / 2) / dim)) in row t and even column c, and the cosine
// in odd columns. [1, tokens, dim]
Init sines() {
  return [](const Tensor& table, Random&) {
    const int64_t tokens = table.dim(1), dim = table.dim(2);
    std::vector<double> values;
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < dim; ++c) {
        const int64_t even = c - c % 2;
        const double exponent = static_cast<double>(even) / static_cast<double>(dim);
        const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
        values.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    // Rounded to f32 first, because checkpoints hold the table in f32.
    table.copy_from(Tensor::from(values, table.shape()).to(table.dtype()).to(table.device()));
  };
}

struct SoftSplit {
  int64_t splits, token_dim;
  std::optional<Directions> directions;
  double ratio;
};

SoftSplit read_soft_split(Fields fields) {
  fields.choice("kind", {"soft_split"});
  SoftSplit o{fields.get<int64_t>("splits", Range::at_least(1)),
              fields.get<int64_t>("token_dim", 64, Range::at_least(1)),
              {},
              0.5};
  if (fields.has("directions")) o.directions = read_directions(fields);
  o.ratio = read_shift_ratio(fields, 2, o.directions.has_value());
  fields.done();
  return o;
}

constexpr ConvOptions split{.stride = 2, .padding = 1};

}  // namespace

T2T::TokenTransformer::TokenTransformer(const Scope& scope, int64_t its_width, int64_t dim,
                                        const AttentionOptions& o, double eps)
    : width(its_width),
      fixed_scale(o.scale_of(its_width)),
      mask_diagonal(o.mask_diagonal),
      path(scope.path()),
      attn_path((scope / "attn").path()) {
  const Scope attn = scope / "attn";
  norm1 = LayerNorm(scope / "norm1", width, eps);
  qkv = Linear(attn / "qkv", width, 3 * dim, {.bias = o.qkv_bias});
  proj = Linear(attn / "proj", dim, dim);
  if (o.learned_scale) scale = attn.parameter("scale", {1}, constant(o.scale_of(width)));
  norm2 = LayerNorm(scope / "norm2", dim, eps);
  mlp = Mlp(scope / "mlp", dim, dim);
}

Tensor T2T::TokenTransformer::attended(const Tensor& z) const {
  const ModuleScope here(attn_path);
  const Tensor packed = qkv(z);  // [B, N, 3 dim]
  const int64_t dim = packed.dim(2) / 3;
  ScoreTerms terms;
  terms.scale = fixed_scale;
  terms.learned_scale = scale;
  terms.mask_diagonal = mask_diagonal;
  const Tensor v = slice(packed, 2, 2 * dim, dim);
  return add(v, proj(attend(packed, 1, terms)));
}

Tensor T2T::TokenTransformer::operator()(const Tensor& z) const {
  const ModuleScope here(path);
  const Tensor u = attended(norm1(z));
  return add(u, mlp(norm2(u)));
}

T2T::T2T(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::truncated_normal);
  Fields fields(config, "t2t");
  const Frame frame = read_frame(fields, "t2t");
  const auto dim = fields.get<int64_t>("dim", Range::at_least(1)),
             depth = fields.get<int64_t>("depth", Range::at_least(1));
  const std::vector<double> rates = drop_rates(fields, depth, "linear");
  const SoftSplit tokenizer = read_soft_split(fields.object("tokenizer"));
  const AttentionOptions attention = read_attention(fields.object("attention"), dim);
  fields.done();

  directions = tokenizer.directions;
  shift = shift_of(2, tokenizer.ratio);
  int64_t channels = frame.in_channels * (directions ? 1 + copies(*directions) : 1), side = frame.image_size;
  const Scope tokens = scope / "tokens_to_token";
  for (int64_t i = 0; i < tokenizer.splits; ++i) {
    side = (side + 1) / 2;
    grids.push_back({side, side});
    if (i + 1 == tokenizer.splits) break;
    attentions.emplace_back(tokens / ("attention" + std::to_string(i + 1)), 9 * channels, tokenizer.token_dim,
                            attention, frame.eps);
    channels = tokenizer.token_dim;
  }
  project = Linear(tokens / "project", 9 * channels, dim);
  tokens_path = tokens.path();
  const Grid grid = grids.back();
  cls_token = scope.parameter("cls_token", {1, 1, dim}, truncated_normal(0.02));
  pos_embed = scope.buffer("pos_embed", {1, 1 + grid.height * grid.width, dim}, sines());
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 1);
  for (int64_t i = 0; i < depth; ++i)
    blocks.emplace_back(scope / "blocks" / i, dim, attention, grid, 1, frame.hidden(dim),
                        rates[static_cast<size_t>(i)], frame.eps);
  norm = LayerNorm(scope / "norm", dim, frame.eps);
  head = Linear(scope / "head", dim, frame.num_classes);
}

Tensor T2T::tokens_of(const Tensor& image) const {
  const ModuleScope here(tokens_path);
  const int64_t images = image.dim(0);
  Tensor map = permute(directions ? shifted_copies(image, *directions, shift) : image, {0, 2, 3, 1});
  for (size_t i = 0; i < attentions.size(); ++i)
    map = attentions[i](unfold(map, 3, split)).reshape({images, grids[i].height, grids[i].width, -1});
  return project(unfold(map, 3, split));
}

Tensor T2T::operator()(const Tensor& image, Pass& pass) const {
  Tensor x = tokens_of(image);                         // [B, N, D]
  x = add(with_class_token(cls_token, x), pos_embed);  // [B, 1 + N, D]
  const Tensor omega = prior ? (*prior)() : Tensor();
  for (const Block& block : blocks) {
    const ModuleScope here(block.path);
    const bool first = &block == &blocks.back() && leaves_out_tokens(x, pass);  // the class token alone
    const auto own = [&](const Tensor& all) { return first ? first_token(all) : all; };
    const BlockDraws draws(x, block.drop_path, pass);
    const Tensor rows = own(x), n = block.norm1(x, draws.attention.images), own_n = own(n);
    const Tensor attended = first ? block.attn.of_first(n, omega) : block.attn(n, omega);
    const auto [y, normed] =
        block.norm2.of_residual(rows, add(own_n, attended), draws.attention, draws.mlp.images);
    x = drop_path(y, block.mlp(normed), draws.mlp);
  }
  return head(norm(class_token_of(x)));  // [B, K]
}

namespace {

// The sizes are those of the SPT and LSA paper's code.
Json t2t_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const Modifiers modifiers = modifiers_of(name);
  const bool shifted = modifiers.shifted, locality = modifiers.locality;
  Json tokenizer{{"kind", "soft_split"}, {"splits", image_size == 64 ? 3 : 2}, {"token_dim", 64}};
  if (shifted) tokenizer.update({{"directions", "diagonal"}, {"ratio", 0.5}});
  Json config = preset_frame("t2t", image_size, num_classes);
  config.update({{"dim", 256},
                 {"depth", 12},
                 {"mlp_ratio", 2.0},
                 {"drop_path", 0.1},
                 {"drop_path_rule", "linear"},
                 {"tokenizer", tokenizer},
                 {"attention",
                  {{"heads", 4},
                   {"head_dim", 64},
                   {"qkv_bias", false},
                   {"scale", locality ? "learned" : "fixed"},
                   {"mask_diagonal", locality}}}});
  return config;
}

}  // namespace

Architecture t2t_architecture() {
  return {"t2t", Task::classify, make_network<T2T>, {"t2t", "s-t2t", "l-t2t", "sl-t2t"}, t2t_preset};
}

}  // namespace tessera
