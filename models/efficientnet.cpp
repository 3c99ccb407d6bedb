#include "models/efficientnet.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/nn/conv_norm.h"
#include "engine/ops/activations.h"
#include "engine/ops/dropout.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "models/parts/block.h"
#include "models/parts/by_image.h"

namespace tessera {

namespace {

using Stage = EfficientNet::Stage;

// A map of this many pixels or more gives a product enough rows by itself; images with smaller ones are taken
// together.
constexpr int64_t smallest_map_alone = 256;

Conv2d pointwise(const Scope& scope, int64_t in, int64_t out) { return {scope, in, out, 1, {.bias = false}}; }

Stage read_stage(Fields fields) {
  const Range positive = Range::at_least(1);
  const Stage stage{fields.get<int64_t>("width", positive), fields.get<int64_t>("depth", positive),
                    fields.get<int64_t>("kernel", positive), fields.get<int64_t>("stride", positive),
                    fields.get<int64_t>("expand", positive)};
  if (stage.kernel % 2 == 0)
    fields.fail_at("kernel", "is ", stage.kernel, "; only an odd one can be padded to keep a map's size");
  fields.done();
  return stage;
}

}  // namespace

EfficientNet::SqueezeExcite::SqueezeExcite(const Scope& scope, int64_t channels, int64_t squeezed)
    : conv_reduce(scope / "conv_reduce", channels, squeezed, 1, {}),
      conv_expand(scope / "conv_expand", squeezed, channels, 1, {}),
      path(scope.path()) {}

Tensor EfficientNet::SqueezeExcite::operator()(const Tensor& x) const {
  const ModuleScope here(path);
  return multiply(x, sigmoid(conv_expand(silu(conv_reduce(mean(x, {1, 2}, true))))));
}

EfficientNet::Block::Block(const Scope& scope, int64_t in, int64_t out, int64_t stride, const Stage& stage,
                           double drop_rate)
    : residual(stride == 1 && in == out), drop_path(drop_rate), path(scope.path()) {
  const bool expands = stage.expand > 1;
  const int64_t middle = stage.expand * in;
  if (expands) {
    expansion = pointwise(scope / "conv_pw", in, middle);
    expansion_norm = BatchNorm(scope / "bn1", middle);
  }
  depthwise = Conv2d(scope / "conv_dw", middle, middle, stage.kernel,
                     {.stride = stride, .padding = (stage.kernel - 1) / 2, .bias = false, .depthwise = true});
  depthwise_norm = BatchNorm(scope / (expands ? "bn2" : "bn1"), middle);
  se = SqueezeExcite(scope / "se", middle, std::max<int64_t>(1, in / 4));
  projection = pointwise(scope / (expands ? "conv_pwl" : "conv_pw"), middle, out);
  projection_norm = BatchNorm(scope / (expands ? "bn3" : "bn2"), out);
}

Tensor EfficientNet::Block::operator()(const Tensor& x, Pass& pass) const {
  if (x.dim(1) * x.dim(2) < smallest_map_alone) return forward(x, pass);
  return by_image(x, pass, 1, [&](const Tensor& image) { return forward(image, pass); });
}

Tensor EfficientNet::Block::forward(const Tensor& x, Pass& pass) const {
  const ModuleScope here(path);
  Tensor y = expansion ? conv_norm(*expansion, expansion_norm, x, pass, Activation::silu) : x;
  y = conv_norm(depthwise, depthwise_norm, y, pass, Activation::silu);
  y = conv_norm(projection, projection_norm, se(y), pass, Activation::none);
  return residual ? tessera::drop_path(x, y, draw_path(drop_path, pass)) : y;
}

EfficientNet::EfficientNet(const Json& config, const Scope& outer) {
  const Scope scope = outer.with(LinearRule::pytorch);
  Fields fields(config, "efficientnet");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"efficientnet"});
  fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto num_classes = fields.get<int64_t>("num_classes", positive);
  const auto stem_width = fields.get<int64_t>("stem_width", 32, positive);
  const auto stem_stride = fields.get<int64_t>("stem_stride", 1, positive);
  const auto head_width = fields.get<int64_t>("head_width", 0, Range::at_least(0));
  drop_rate = read_rate(fields, "dropout");
  const double drop_path = read_rate(fields, "drop_path");
  std::vector<Stage> stages;
  for (const Fields& stage : fields.objects("stages")) stages.push_back(read_stage(stage));
  if (stages.empty()) fields.fail_at("stages", "is empty, a stage at least is wanted");
  fields.done();

  conv_stem = Conv2d(scope / "conv_stem", in_channels, stem_width, 3,
                     {.stride = stem_stride, .padding = 1, .bias = false});
  bn1 = BatchNorm(scope / "bn1", stem_width);
  int64_t total = 0, width = stem_width;
  for (const Stage& stage : stages) total += stage.depth;
  for (size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    for (int64_t j = 0; j < stage.depth; ++j, width = stage.width) {
      const double rate = drop_path * static_cast<double>(blocks.size()) / static_cast<double>(total);
      blocks.emplace_back(scope / "blocks" / static_cast<int64_t>(s) / j, width, stage.width,
                          j == 0 ? stage.stride : 1, stage, rate);
    }
  }
  if (head_width > 0) {
    conv_head = pointwise(scope / "conv_head", width, head_width);
    bn2 = BatchNorm(scope / "bn2", head_width);
    width = head_width;
  }
  classifier = Linear(scope / "classifier", width, num_classes);
}

Tensor EfficientNet::operator()(const Tensor& image, Pass& pass) const {
  Tensor x = conv_norm(conv_stem, bn1, permute(image, {0, 2, 3, 1}), pass,
                       Activation::silu);  // [B, H, W, stem_width]
  for (const Block& block : blocks) x = block(x, pass);
  if (conv_head) x = conv_norm(*conv_head, bn2, x, pass, Activation::silu);
  x = mean(x, {1, 2});
  return classifier(pass.drops() && drop_rate > 0 ? dropout(x, drop_rate, pass.key()) : x);
}

namespace {

// efficientnet-b0 for images of 32 and 64 pixels: the stem has stride 1 and there is no head convolution.
Json efficientnet_preset(const std::string&, int64_t image_size, int64_t num_classes) {
  static constexpr Stage b0[] = {{16, 1, 3, 1, 1},  {24, 2, 3, 2, 6},  {40, 2, 5, 2, 6}, {80, 3, 3, 2, 6},
                                 {112, 3, 5, 1, 6}, {192, 4, 5, 2, 6}, {320, 1, 3, 1, 6}};
  Json stages = Json::array();
  for (const auto& [width, depth, kernel, stride, expand] : b0)
    stages.push_back(
        {{"width", width}, {"depth", depth}, {"kernel", kernel}, {"stride", stride}, {"expand", expand}});
  return {
      {"arch", "efficientnet"}, {"image_size", image_size}, {"in_channels", 3}, {"num_classes", num_classes},
      {"stem_width", 32},       {"stem_stride", 1},         {"head_width", 0},  {"stages", stages},
      {"dropout", 0.2},         {"drop_path", 0.0}};
}

}  // namespace

Architecture efficientnet_architecture() {
  return {
      "efficientnet", Task::classify, make_network<EfficientNet>, {"efficientnet-b0"}, efficientnet_preset};
}

}  // namespace tessera
