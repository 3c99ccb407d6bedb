#include "models/segment.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/ops/activations.h"
#include "engine/ops/dropout.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/resample.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

// Resizes a map bilinearly with half-pixel centres. [B, h, w, C] -> [B, height, width, C]
Tensor resize(const Tensor& x, int64_t height, int64_t width) {
  if (x.dim(1) == height && x.dim(2) == width) return x;
  return resample(x, bilinear_taps(x.dim(1), height), bilinear_taps(x.dim(2), width));
}

Tensor resize_to(const Tensor& x, const Tensor& like) { return resize(x, like.dim(1), like.dim(2)); }

struct DecoderOptions {
  std::vector<int64_t> out_blocks, pool_scales;
  int64_t top_channels, channels;
  double dropout;
};

DecoderOptions read_decoder(Fields fields) {
  const Range positive = Range::at_least(1);
  fields.choice("kind", {"upernet"});
  DecoderOptions o{fields.get<std::vector<int64_t>>("out_blocks", Range::at_least(0)),
                   fields.get("pool_scales", std::vector<int64_t>{1, 2, 3, 6}, positive),
                   fields.get<int64_t>("top_channels", positive), fields.get<int64_t>("channels", positive),
                   read_rate(fields, "dropout", 0.1)};
  std::sort(o.out_blocks.begin(), o.out_blocks.end());
  const bool repeats = std::adjacent_find(o.out_blocks.begin(), o.out_blocks.end()) != o.out_blocks.end();
  if (o.out_blocks.size() != 4 || repeats)
    fields.fail_at("out_blocks", "has to name four blocks, one for each level of the pyramid");
  fields.done();
  return o;
}

struct AuxOptions {
  int64_t level, channels;
  double dropout, weight;
};

AuxOptions read_aux(Fields fields) {
  const AuxOptions o{fields.get<int64_t>("level", Range::between(0, 2)),
                     fields.get<int64_t>("channels", Range::at_least(1)), read_rate(fields, "dropout", 0.1),
                     fields.get("weight", 0.4, Range::at_least(0))};
  fields.done();
  return o;
}

}  // namespace

Segmenter::Unit::Unit(const Scope& scope, int64_t in, int64_t out, int64_t kernel)
    : conv(scope / "conv", in, out, kernel, {.padding = kernel / 2, .bias = false}),
      bn(scope / "bn", out),
      path(scope.path()) {}

Tensor Segmenter::Unit::operator()(const Tensor& x, const Pass& pass) const {
  const ModuleScope here(path);
  return relu(bn(conv(x), pass));
}

Segmenter::UpUnit::UpUnit(const Scope& scope, int64_t dim, int64_t factor)
    : weight((scope / "conv").parameter("weight", {dim, dim, factor, factor}, pytorch_uniform())),
      bn(scope / "bn", dim),
      path(scope.path()),
      conv_path((scope / "conv").path()) {}

Tensor Segmenter::UpUnit::operator()(const Tensor& x, const Pass& pass) const {
  const int64_t images = x.dim(0), h = x.dim(1), w = x.dim(2), out = weight.dim(1), f = weight.dim(2);
  const auto upsampled = [&] {
    const ModuleScope here(conv_path);
    const Tensor map = permute(weight, {2, 3, 1, 0}).reshape({f * f * out, x.dim(3)});
    const Tensor pixels = linear(x, map, {}, Activation::none).reshape({images, h, w, f, f, out});
    return permute(pixels, {0, 1, 3, 2, 4, 5}).reshape({images, h * f, w * f, out});
  };
  const ModuleScope here(path);
  return relu(bn(upsampled(), pass));
}

Segmenter::Pyramid::Pyramid(const Scope& scope, int64_t dim, int64_t top)
    : up0(scope / "up0", dim, 4),
      up1(scope / "up1", dim, 2),
      out0(scope / "out0", dim, dim, 1),
      out1(scope / "out1", dim, dim, 1),
      out2(scope / "out2", dim, dim, 1),
      out3(scope / "out3", dim, top, 1) {}

std::vector<Tensor> Segmenter::Pyramid::operator()(const std::vector<Tensor>& maps, const Pass& pass) const {
  return {out0(up0(maps[0], pass), pass), out1(up1(maps[1], pass), pass), out2(maps[2], pass),
          out3(maps[3], pass)};
}

Segmenter::Classifier::Classifier(const Scope& scope, int64_t channels, int64_t classes, double rate)
    : classify(scope, channels, classes, 1, {.weight_init = normal(0.01)}), drop_rate(rate) {}

Tensor Segmenter::Classifier::operator()(const Tensor& x, Pass& pass) const {
  const bool drops = pass.drops() && drop_rate > 0;
  return classify(drops ? channel_dropout(x, drop_rate, pass.key()) : x);
}

Tensor Segmenter::UperNet::operator()(const std::vector<Tensor>& levels, Pass& pass) const {
  const ModuleScope here(path);
  const Tensor& highest = levels[3];
  std::vector<Tensor> joined{highest};
  for (size_t i = 0; i < scales.size(); ++i) {
    const Tensor cells =
        resample(highest, average_taps(highest.dim(1), scales[i]), average_taps(highest.dim(2), scales[i]));
    joined.push_back(resize_to(pool[i](cells, pass), highest));
  }
  std::vector<Tensor> x;
  for (size_t i = 0; i < 3; ++i) x.push_back(lateral[i](levels[i], pass));
  x.push_back(top(concat(joined, 3), pass));
  for (size_t i = 3; i > 0; --i) x[i - 1] = add(x[i - 1], resize_to(x[i], x[i - 1]));
  for (size_t i = 0; i < 3; ++i) x[i] = smooth[i](x[i], pass);
  for (size_t i = 1; i < 4; ++i) x[i] = resize_to(x[i], x[0]);
  return classifier(fuse(concat(x, 3), pass), pass);
}

Segmenter::Segmenter(const Json& config, const Scope& scope) {
  Fields fields(config, "segment");
  const Range positive = Range::at_least(1);
  fields.choice("arch", {"segment"});
  const auto image_size = fields.get<int64_t>("image_size", positive);
  const auto in_channels = fields.get<int64_t>("in_channels", 3, positive);
  const auto classes = fields.get<int64_t>("num_classes", Range::between(1, no_class));
  fields.object("backbone");  // fails with its own message if it is no object
  Json inner = *fields.find("backbone");
  const DecoderOptions options = read_decoder(fields.object("decoder"));
  const auto aux_fields = fields.find_object("aux");
  fields.done();
  check(inner.contains("arch") && inner.at("arch") == "lvvit" && inner.contains("num_classes") &&
            inner.at("num_classes") == 0,
        "segment: the backbone is an lvvit with num_classes 0");
  inner["image_size"] = image_size;
  inner["in_channels"] = in_channels;

  backbone.emplace(inner, scope / "backbone");
  out_blocks = options.out_blocks;
  const auto depth = static_cast<int64_t>(backbone->blocks.size());
  if (out_blocks.back() >= depth)
    fail("segment: decoder.out_blocks names block ", out_blocks.back(), ", the backbone has 0 to ",
         depth - 1);
  const int64_t dim = backbone->pos_embed.dim(2), top = options.top_channels, c = options.channels;
  pyramid = Pyramid(scope / "pyramid", dim, top);
  const Scope here = scope / "decoder";
  decoder.path = here.path();
  decoder.scales = options.pool_scales;
  const auto scales = static_cast<int64_t>(decoder.scales.size());
  for (int64_t i = 0; i < scales; ++i) decoder.pool.emplace_back(here / "pool" / i, top, c, 1);
  decoder.top = Unit(here / "top", top + scales * c, c, 3);
  for (int64_t i = 0; i < 3; ++i) decoder.lateral.emplace_back(here / "lateral" / i, dim, c, 1);
  for (int64_t i = 0; i < 3; ++i) decoder.smooth.emplace_back(here / "smooth" / i, c, c, 3);
  decoder.fuse = Unit(here / "fuse", 4 * c, c, 3);
  decoder.classifier = Classifier(here / "classify", c, classes, options.dropout);
  if (!aux_fields) return;
  const AuxOptions o = read_aux(*aux_fields);
  const Scope head = scope / "aux";
  aux = AuxHead{Unit(head / "unit", dim, o.channels, 3),
                Classifier(head / "classify", o.channels, classes, o.dropout), static_cast<size_t>(o.level),
                o.weight, head.path()};
}

Segmenter::Both Segmenter::both(const Tensor& image, Pass& pass, bool has_aux) const {
  const std::vector<Tensor> levels = pyramid(backbone->features(image, pass, {}, out_blocks).maps, pass);
  const int64_t height = image.dim(2), width = image.dim(3);
  Both result{resize(decoder(levels, pass), height, width), {}};
  if (!aux || !has_aux) return result;
  const auto small = [&] {
    const ModuleScope here(aux->path);
    return aux->classifier(aux->unit(levels[aux->level], pass), pass);
  };
  result.aux = resize(small(), height, width);
  return result;
}

Tensor Segmenter::loss(const Both& both, const Tensor& target, const LossOptions& options) const {
  const auto weight =
      options.rows > 0 ? static_cast<double>(target.dim(0)) / static_cast<double>(options.rows) : 1.0;
  const LossOptions of_pixels{.smoothing = options.smoothing, .rows = 0, .ignore = no_class};
  const Tensor main = scale(cross_entropy(both.logits, target, of_pixels), weight);
  if (!both.aux.defined()) return main;
  return add(main, scale(cross_entropy(both.aux, target, of_pixels), weight * aux->weight));
}

Tensor Segmenter::operator()(const Tensor& image, Pass& pass) const {
  return permute(both(image, pass, false).logits, {0, 3, 1, 2});
}

TensorMap Segmenter::evaluate(const TensorMap& inputs, Pass& pass) const {
  const Both logits = both(entry(inputs, "input"), pass, true);
  TensorMap outputs{{"logits", permute(logits.logits, {0, 3, 1, 2})},
                    {"loss", loss(logits, entry(inputs, "target"), {})}};
  if (logits.aux.defined()) outputs["aux_logits"] = permute(logits.aux, {0, 3, 1, 2});
  return outputs;
}

TrainingLoss Segmenter::training_loss(const TensorMap& inputs, const LossOptions& options, Pass& pass) const {
  const Both logits = both(entry(inputs, "input"), pass, true);
  return {loss(logits, entry(inputs, "target"), options), permute(logits.logits, {0, 3, 1, 2})};
}

namespace {

Json segment_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  // "lvvit-s-seg" has the backbone "lvvit-s".
  Json backbone = lvvit_preset(name.substr(0, name.size() - 4), image_size, 0);
  backbone["dense"] = false;
  backbone["mix_token"] = false;
  return {{"arch", "segment"},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"backbone", backbone},
          {"decoder",
           {{"kind", "upernet"},
            {"out_blocks", {6, 9, 12, 15}},
            {"top_channels", 2048},
            {"channels", 256},
            {"pool_scales", {1, 2, 3, 6}},
            {"dropout", 0.1}}},
          {"aux", {{"level", 2}, {"channels", 256}, {"dropout", 0.1}, {"weight", 0.4}}}};
}

}  // namespace

Architecture segment_architecture() {
  return {"segment", Task::segment, make_network<Segmenter>, {"lvvit-s-seg", "sp-vit-s-seg"}, segment_preset};
}

}  // namespace tessera
