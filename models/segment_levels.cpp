#include "models/segment_levels.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/core/printable.h"
#include "engine/nn/conv_norm.h"
#include "engine/ops/activations.h"
#include "engine/ops/linear.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

constexpr double norm_eps = 1e-5;

std::vector<int64_t> read_out_blocks(Fields& fields, int64_t depth) {
  auto blocks = fields.get<std::vector<int64_t>>("out_blocks", Range::at_least(0));
  std::sort(blocks.begin(), blocks.end());
  const bool repeats = std::adjacent_find(blocks.begin(), blocks.end()) != blocks.end();
  if (blocks.size() != 4 || repeats)
    fields.fail_at("out_blocks", "has to name four blocks, one for each level of the pyramid");
  if (blocks.back() >= depth)
    fields.fail_at("out_blocks", "names block ", blocks.back(), ", the backbone has 0 to ", depth - 1);
  return blocks;
}

}  // namespace

ConvUnit::ConvUnit(const Scope& scope, int64_t in, int64_t out, int64_t kernel)
    : conv(scope / "conv", in, out, kernel, {.padding = kernel / 2, .bias = false}),
      bn(scope / "bn", out),
      path(scope.path()) {}

Tensor ConvUnit::operator()(const Tensor& x, const Pass& pass) const {
  const ModuleScope here(path);
  return conv_norm(conv, bn, x, pass, Activation::relu);
}

UpUnit::UpUnit(const Scope& scope, int64_t dim, int64_t factor)
    : weight((scope / "conv").parameter("weight", {dim, dim, factor, factor}, pytorch_uniform())),
      bn(scope / "bn", dim),
      path(scope.path()),
      conv_path((scope / "conv").path()) {}

Tensor UpUnit::operator()(const Tensor& x, const Pass& pass) const {
  const int64_t images = x.dim(0), h = x.dim(1), w = x.dim(2), out = weight.dim(1), f = weight.dim(2);
  const auto upsampled = [&] {
    const ModuleScope here(conv_path);
    const Tensor map = permute(weight, {2, 3, 1, 0}).reshape({f * f * out, x.dim(3)});
    const Tensor pixels = linear(x, map, {}, Activation::none).reshape({images, h, w, f, f, out});
    return permute(pixels, {0, 1, 3, 2, 4, 5}).reshape({images, h * f, w * f, out});
  };
  const ModuleScope here(path);
  return bn(upsampled(), pass, Activation::relu);
}

MapPyramid::MapPyramid(const Scope& scope, int64_t dim, int64_t top)
    : up0(scope / "up0", dim, 4),
      up1(scope / "up1", dim, 2),
      out0(scope / "out0", dim, dim, 1),
      out1(scope / "out1", dim, dim, 1),
      out2(scope / "out2", dim, dim, 1),
      out3(scope / "out3", dim, top, 1) {}

std::vector<Tensor> MapPyramid::operator()(const std::vector<Tensor>& maps, const Pass& pass) const {
  return {out0(up0(maps[0], pass), pass), out1(up1(maps[1], pass), pass), out2(maps[2], pass),
          out3(maps[3], pass)};
}

SegmentLevels::SegmentLevels(const Json& backbone, Fields& decoder, const Scope& scope) {
  const std::string arch = backbone.value("arch", "");
  check(arch == "lvvit" || arch == "rmt" || arch == "sdt" || arch == "swin", "segment: the backbone is '",
        printable(arch), "'; wanted lvvit, rmt, sdt or swin");
  check(backbone.contains("num_classes") && backbone.at("num_classes") == 0,
        "segment: the backbone has num_classes 0, since it classifies nothing");
  const Scope inside = scope / "backbone", outside = scope / "pyramid";
  if (arch == "lvvit") {
    columnar = std::make_unique<const LvVit>(backbone, inside);
    pyramid_of_blocks(decoder, outside);
    return;
  }
  if (arch == "swin") {
    windowed = std::make_unique<const Swin>(backbone, inside);
    channels = windowed->dims;
  } else {
    decaying = std::make_unique<const RMT>(backbone, inside);
    channels = decaying->dims;
  }
  check(count() >= 2, "segment: the backbone has one stage, a decoder joins at least two");
  for (int64_t i = 0; i < count(); ++i)
    norms_.emplace_back(outside / "norms" / i, channels[static_cast<size_t>(i)], norm_eps);
}

void SegmentLevels::pyramid_of_blocks(Fields& decoder, const Scope& scope) {
  out_blocks_ = read_out_blocks(decoder, std::ssize(columnar->blocks));
  const auto top = decoder.get<int64_t>("top_channels", Range::at_least(1));
  const int64_t dim = columnar->pos_embed.dim(2);
  pyramid_.emplace(scope, dim, top);
  channels = {dim, dim, dim, top};
}

std::vector<Tensor> SegmentLevels::operator()(const Tensor& image, Pass& pass) const {
  if (columnar) return (*pyramid_)(columnar->features(image, pass, {}, out_blocks_).maps, pass);
  std::vector<Tensor> maps;
  if (windowed)
    windowed->features(image, pass, &maps);
  else
    decaying->features(image, pass, &maps);
  for (size_t i = 0; i < maps.size(); ++i) maps[i] = norms_[i](maps[i]);
  return maps;
}

}  // namespace tessera
