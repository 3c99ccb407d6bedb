#include "models/vit.h"

#include "engine/ops/elementwise.h"
#include "models/parts/by_image.h"
#include "models/parts/class_token.h"
#include "models/parts/frame.h"

namespace tessera {

namespace {

// The tokens of four images of the paper's sizes, and what a block makes of them, stay in a core's cache.
constexpr int64_t images_at_a_time = 4;

}  // namespace

ViT::ViT(const Json& config, const Scope& scope) {
  Fields fields(config, "vit");
  const Frame frame = read_frame(fields, "vit");
  const auto dim = fields.get<int64_t>("dim", Range::at_least(1)),
             depth = fields.get<int64_t>("depth", Range::at_least(1));
  const std::vector<double> rates = drop_rates(fields, depth, "constant");
  const Tokenizer::Options tokenizer = read_tokenizer(fields.object("tokenizer"));
  const AttentionOptions attention = read_attention(fields.object("attention"), dim);
  fields.done();

  const Grid grid = patch_grid(frame.image_size, tokenizer);
  patch_embed = Tokenizer(scope / "patch_embed", tokenizer, frame.in_channels, dim, frame.eps);
  cls_token = scope.parameter("cls_token", {1, 1, dim}, normal(1));
  pos_embed = scope.parameter("pos_embed", {1, 1 + grid.height * grid.width, dim}, normal(1));
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 1);
  for (int64_t i = 0; i < depth; ++i)
    blocks.emplace_back(scope / "blocks" / i, dim, attention, grid, 1, frame.hidden(dim),
                        rates[static_cast<size_t>(i)], frame.eps);
  norm = LayerNorm(scope / "norm", dim, frame.eps);
  head = Linear(scope / "head", dim, frame.num_classes);
}

Tensor ViT::operator()(const Tensor& image, Pass& pass) const {
  Tensor x = patch_embed(image);                       // [B, N, D]
  x = add(with_class_token(cls_token, x), pos_embed);  // [B, 1 + N, D]
  const Tensor omega = prior ? (*prior)() : Tensor();
  const Tensor cls = by_image(x, pass, images_at_a_time, [&](const Tensor& some) {
    return class_token_after(blocks, some, omega, pass);  // [B, D]
  });
  return head(norm(cls));  // [B, K]
}

namespace {

// The sizes are the SPT and LSA paper's: t-vit has LSA's learned scale alone, m-vit its diagonal mask alone.
Json vit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const Modifiers modifiers = modifiers_of(name);
  const bool learned = modifiers.locality || name == "t-vit", masked = modifiers.locality || name == "m-vit";
  Json tokenizer = modifiers.shifted ? shifted_options() : Json{{"kind", "patch"}};
  tokenizer["patch_size"] = image_size / 8;
  Json config = preset_frame("vit", image_size, num_classes);
  config.update({{"dim", 192},
                 {"depth", 9},
                 {"mlp_ratio", 2.0},
                 {"drop_path", 0.1},
                 {"drop_path_rule", "constant"},
                 {"tokenizer", tokenizer},
                 {"attention",
                  {{"heads", 12},
                   {"head_dim", 16},
                   {"qkv_bias", false},
                   {"scale", learned ? "learned" : "fixed"},
                   {"mask_diagonal", masked}}}});
  return config;
}

}  // namespace

Architecture vit_architecture() {
  return {"vit",
          Task::classify,
          make_network<ViT>,
          {"vit", "t-vit", "m-vit", "l-vit", "s-vit", "sl-vit"},
          vit_preset,
          8};
}

}  // namespace tessera
