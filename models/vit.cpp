#include "models/vit.h"

#include <map>

#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"

namespace tessera {

ViT::ViT(const Json& config, const Scope& scope) {
  Fields fields(config, "vit");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"vit"});
  const auto image_size = fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto num_classes = fields.get<int64_t>("num_classes", positive);
  const auto dim = fields.get<int64_t>("dim", positive), depth = fields.get<int64_t>("depth", positive);
  const double mlp_ratio = fields.get("mlp_ratio", 2.0, Range::above(0)), eps = fields.get("norm_eps", 1e-5);
  const std::vector<double> rates = drop_rates(fields, depth, "constant");
  const Tokenizer::Options tokenizer = read_tokenizer(fields.object("tokenizer"));
  const AttentionOptions attention = read_attention(fields.object("attention"), dim);
  fields.done();

  const Grid grid = patch_grid(image_size, tokenizer.patch_size);
  patch_embed = Tokenizer(scope / "patch_embed", tokenizer, in_channels, dim, eps);
  cls_token = scope.parameter("cls_token", {1, 1, dim}, normal(1));
  pos_embed = scope.parameter("pos_embed", {1, 1 + grid.height * grid.width, dim}, normal(1));
  if (attention.prior.sharing == Sharing::model)
    prior.emplace(scope / "prior", 1, attention.prior.hidden, grid, 1);
  const auto hidden = static_cast<int64_t>(static_cast<double>(dim) * mlp_ratio);
  for (int64_t i = 0; i < depth; ++i)
    blocks.emplace_back(scope / "blocks" / i, dim, attention, grid, 1, hidden, rates[static_cast<size_t>(i)],
                        eps);
  norm = LayerNorm(scope / "norm", dim, eps);
  head = Linear(scope / "head", dim, num_classes);
}

Tensor ViT::operator()(const Tensor& image, Pass& pass) const {
  const int64_t images = image.dim(0), dim = pos_embed.dim(2);
  Tensor x = patch_embed(image);                                                  // [B, N, D]
  x = add(concat({broadcast_to(cls_token, {images, 1, dim}), x}, 1), pos_embed);  // [B, 1 + N, D]
  const Tensor omega = prior ? (*prior)() : Tensor();
  for (const Block& block : blocks) x = block(x, omega, pass);
  return head(norm(slice(x, 1, 0, 1).reshape({images, dim})));  // [B, K]
}

Json vit_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  struct Modifiers {
    bool shifted, learned, masked;
  };
  static const std::map<std::string, Modifiers> known{
      {"vit", {false, false, false}}, {"t-vit", {false, true, false}}, {"m-vit", {false, false, true}},
      {"l-vit", {false, true, true}}, {"s-vit", {true, false, false}}, {"sl-vit", {true, true, true}}};
  const auto found = known.find(name);
  if (found == known.end()) return {};
  const auto [shifted, learned, masked] = found->second;
  Json tokenizer{{"kind", shifted ? "shifted" : "patch"}, {"patch_size", image_size / 8}};
  if (shifted) tokenizer.update({{"directions", "diagonal"}, {"ratio", 0.5}});
  return {{"arch", "vit"},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"dim", 192},
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
            {"mask_diagonal", masked}}}};
}

}  // namespace tessera
