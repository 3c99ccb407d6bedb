#include "models/resnet.h"

#include <map>

#include "engine/autograd/observe.h"
#include "engine/nn/conv_norm.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "engine/ops/take.h"
#include "models/parts/by_image.h"

namespace tessera {

namespace {

Conv2d conv3x3(const Scope& scope, int64_t in, int64_t out, int64_t stride) {
  return {scope, in, out, 3, {.stride = stride, .padding = 1, .bias = false, .weight_init = he_normal()}};
}

// The raster indices of every stride-th pixel of every stride-th row of a map.
Tensor every(int64_t stride, int64_t height, int64_t width) {
  std::vector<int64_t> places;
  for (int64_t y = 0; y < height; y += stride)
    for (int64_t x = 0; x < width; x += stride) places.push_back(y * width + x);
  return Tensor::from(places, {static_cast<int64_t>(places.size())});
}

}  // namespace

ResNet::Block::Block(const Scope& scope, int64_t in, int64_t out, int64_t its_stride)
    : conv1(conv3x3(scope / "conv1", in, out, its_stride)),
      conv2(conv3x3(scope / "conv2", out, out, 1)),
      bn1(scope / "bn1", out),
      bn2(scope / "bn2", out),
      stride(its_stride),
      padding((out - in) / 2),
      path(scope.path()) {}

Tensor ResNet::Block::shortcut(const Tensor& x) const {
  if (stride == 1 && padding == 0) return x;
  const int64_t images = x.dim(0), height = x.dim(1), width = x.dim(2), channels = x.dim(3);
  const Tensor taken = take(x.reshape({images, height * width, channels}), 1, every(stride, height, width));
  const Tensor zeros = Tensor::zeros({images, taken.dim(1), padding}, x.dtype(), x.device());
  return concat({zeros, taken, zeros}, 2)
      .reshape({images, (height + stride - 1) / stride, -1, channels + 2 * padding});
}

Tensor ResNet::Block::operator()(const Tensor& x, const Pass& pass) const {
  const ModuleScope here(path);
  const Tensor middle = conv_norm(conv1, bn1, x, pass, Activation::relu);
  return conv_norm(conv2, bn2, middle, pass, Activation::relu, shortcut(x));
}

ResNet::ResNet(const Json& config, const Scope& scope) {
  Fields fields(config, "resnet");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"resnet"});
  fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto num_classes = fields.get<int64_t>("num_classes", positive);
  const auto depth = fields.get<int64_t>("depth", positive);
  const auto width = fields.get<int64_t>("width", 16, positive);
  if (depth < 8 || depth % 6 != 2)
    fields.fail_at("depth", "is ", depth, "; 6 n + 2 layers are wanted: 8, 14, 20, ...");
  if (width % 2 != 0)
    fields.fail_at("width", "is ", width, "; an even one is wanted, for shortcuts pad half on either side");
  fields.done();

  conv1 = conv3x3(scope / "conv1", in_channels, width, 1);
  bn1 = BatchNorm(scope / "bn1", width);
  int64_t channels = width;
  for (int64_t stage = 1; stage <= 3; ++stage) {
    const Scope layer = scope / ("layer" + std::to_string(stage));
    const int64_t out = width << (stage - 1);
    for (int64_t j = 0; j < (depth - 2) / 6; ++j, channels = out)
      blocks.emplace_back(layer / j, channels, out, j == 0 && stage > 1 ? 2 : 1);
  }
  fc = Linear(scope / "fc", channels, num_classes,
              {.weight_init = he_normal(), .bias_init = pytorch_uniform(channels)});
}

Tensor ResNet::operator()(const Tensor& image, Pass& pass) const {
  Tensor x = conv_norm(conv1, bn1, permute(image, {0, 2, 3, 1}), pass, Activation::relu);  // [B, H, W, width]
  const auto layers = [&](Tensor y) {
    for (const Block& block : blocks) y = block(y, pass);
    return y;
  };
  x = wide_by_image(x, pass, 1, layers);
  return fc(mean(x, {1, 2}));
}

namespace {

Json resnet_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  static const std::map<std::string, int64_t> depths{{"resnet56", 56}, {"resnet110", 110}};
  return {{"arch", "resnet"},           {"image_size", image_size}, {"in_channels", 3},
          {"num_classes", num_classes}, {"depth", depths.at(name)}, {"width", 16}};
}

}  // namespace

Architecture resnet_architecture() {
  return {"resnet", Task::classify, make_network<ResNet>, {"resnet56", "resnet110"}, resnet_preset};
}

}  // namespace tessera
