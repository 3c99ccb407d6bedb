#include "models/parts/tokenizer.h"

#include "engine/autograd/observe.h"
#include "engine/ops/conv.h"
#include "engine/ops/linear.h"
#include "engine/ops/shape.h"

namespace tessera {

int64_t copies(Directions directions) { return directions == Directions::all ? 8 : 4; }

Directions read_directions(Fields& fields) {
  const std::string text = fields.choice("directions", {"cardinal", "diagonal", "all"}, "diagonal");
  return text == "cardinal"   ? Directions::cardinal
         : text == "diagonal" ? Directions::diagonal
                              : Directions::all;
}

int64_t shift_of(int64_t patch_size, double ratio) {
  return static_cast<int64_t>(static_cast<double>(patch_size) * ratio);
}

double read_shift_ratio(Fields& fields, int64_t patch_size, bool shifts) {
  const double ratio = fields.get("ratio", 0.5, Range::at_least(0));
  if (shifts && ratio > 0 && shift_of(patch_size, ratio) == 0)
    fields.fail_at("ratio", "is ", ratio, ", a shift of ", ratio * static_cast<double>(patch_size),
                   " pixels on patches of ", patch_size,
                   ", which truncates to 0: the shifted copies would be the image itself; give a larger ",
                   "ratio, or 0 if that is wanted");
  return ratio;
}

Tokenizer::Options read_tokenizer(Fields fields) {
  Tokenizer::Options o;
  o.shifted = fields.choice("kind", {"patch", "shifted"}) == "shifted";
  o.patch_size = fields.get<int64_t>("patch_size", Range::at_least(1));
  o.stride = fields.get<int64_t>("stride", o.patch_size, Range::at_least(1));
  if (o.stride == o.patch_size) o.stride = 0;
  o.directions = read_directions(fields);
  o.ratio = read_shift_ratio(fields, o.patch_size, o.shifted);
  o.post_norm = fields.get("post_norm", false);
  if (o.shifted && o.post_norm) fields.fail_at("post_norm", "goes with kind patch; SPT norms before its map");
  if (o.shifted && o.stride) fields.fail_at("stride", "goes with kind patch; SPT's patches lie side by side");
  fields.done();
  return o;
}

Grid patch_grid(int64_t image_size, const Tokenizer::Options& o) {
  check(image_size >= o.patch_size, "tokenizer: an image of ", image_size,
        " pixels is smaller than a patch of ", o.patch_size);
  check(o.stride || image_size % o.patch_size == 0, "tokenizer: an image of ", image_size,
        " pixels is no whole number of patches of ", o.patch_size);
  const int64_t side = (image_size - o.patch_size) / (o.stride ? o.stride : o.patch_size) + 1;
  return {side, side};
}

Tokenizer::Tokenizer(const Scope& scope, const Options& o, int64_t in_channels, int64_t dim, double eps,
                     const Init& init)
    : options(o), path(scope.path()), proj_path((scope / "proj").path()) {
  const int64_t channels = in_channels * (o.shifted ? 1 + copies(o.directions) : 1), p = o.patch_size;
  if (o.shifted) norm = LayerNorm(scope / "norm", channels * p * p, eps);
  const Scope proj = scope / "proj";
  const LinearRule rule = scope.linear_rule();
  weight = proj.parameter("weight", {dim, channels, p, p}, init ? init : weight_init(rule));
  bias = proj.parameter("bias", {dim}, init ? constant(0) : bias_init(rule, channels * p * p));
  if (o.post_norm) norm = LayerNorm(scope / "norm", dim, eps);
}

Tensor Tokenizer::projected(const Tensor& patches) const {
  const ModuleScope here(proj_path);
  return linear(patches, weight.reshape({weight.dim(0), -1}), bias);
}

Tensor Tokenizer::overlapping(const Tensor& image) const {
  const Tensor pixels = permute(image, {0, 2, 3, 1});  // [B, H, W, C]
  const ModuleScope here(proj_path);
  return conv2d(pixels, weight, bias, {.stride = options.stride}).reshape({image.dim(0), -1, weight.dim(0)});
}

Tensor Tokenizer::operator()(const Tensor& image) const {
  const ModuleScope here(path);
  if (!options.shifted) {
    const Tensor tokens = options.stride ? overlapping(image) : projected(patches(image, options.patch_size));
    return options.post_norm ? norm(tokens) : tokens;
  }
  const int64_t shift = shift_of(options.patch_size, options.ratio);
  return projected(norm(shifted_patches(image, options.patch_size, options.directions, shift)));
}

}  // namespace tessera
