#include "models/parts/tokenizer.h"

#include "engine/autograd/observe.h"
#include "engine/ops/linear.h"

namespace tessera {

int64_t copies(Directions directions) { return directions == Directions::all ? 8 : 4; }

Directions read_directions(Fields& fields) {
  const std::string text = fields.choice("directions", {"cardinal", "diagonal", "all"}, "diagonal");
  return text == "cardinal"   ? Directions::cardinal
         : text == "diagonal" ? Directions::diagonal
                              : Directions::all;
}

Tokenizer::Options read_tokenizer(Fields fields) {
  Tokenizer::Options o;
  o.shifted = fields.choice("kind", {"patch", "shifted"}) == "shifted";
  o.patch_size = fields.get<int64_t>("patch_size", Range::at_least(1));
  o.directions = read_directions(fields);
  o.ratio = fields.get("ratio", 0.5, Range::at_least(0));
  o.post_norm = fields.get("post_norm", false);
  if (o.shifted && o.post_norm) fields.fail_at("post_norm", "goes with kind patch; SPT norms before its map");
  fields.done();
  return o;
}

Grid patch_grid(int64_t image_size, int64_t patch_size) {
  check(image_size > 0 && image_size % patch_size == 0, "tokenizer: an image of ", image_size,
        " pixels is no whole ", "number of patches of ", patch_size);
  return {image_size / patch_size, image_size / patch_size};
}

Tokenizer::Tokenizer(const Scope& scope, const Options& o, int64_t in_channels, int64_t dim, double eps,
                     const Init& init)
    : options(o), path(scope.path()) {
  const int64_t channels = in_channels * (o.shifted ? 1 + copies(o.directions) : 1), p = o.patch_size;
  if (o.shifted) norm = LayerNorm(scope / "norm", channels * p * p, eps);
  const Scope proj = scope / "proj";
  const LinearRule rule = scope.linear_rule();
  weight = proj.parameter("weight", {dim, channels, p, p}, init ? init : weight_init(rule));
  bias = proj.parameter("bias", {dim}, init ? constant(0) : bias_init(rule, channels * p * p));
  if (o.post_norm) norm = LayerNorm(scope / "norm", dim, eps);
}

Tensor Tokenizer::operator()(const Tensor& image) const {
  const Inside here(path);
  const Tensor map = weight.reshape({weight.dim(0), -1});  // [D, C(S+1) P P]
  if (!options.shifted) {
    const Tensor tokens = linear(patches(image, options.patch_size), map, bias);
    return options.post_norm ? norm(tokens) : tokens;
  }
  const auto shift = static_cast<int64_t>(static_cast<double>(options.patch_size) * options.ratio);
  return linear(norm(shifted_patches(image, options.patch_size, options.directions, shift)), map, bias);
}

}  // namespace tessera
