#include "models/segment.h"

#include <algorithm>

#include "engine/autograd/observe.h"
#include "engine/ops/activations.h"
#include "engine/ops/dropout.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/resample.h"
#include "engine/ops/shape.h"
#include "models/presets.h"

namespace tessera {

namespace {

// Resizes a map bilinearly with half-pixel centres. [B, h, w, C] -> [B, height, width, C]
Tensor resize(const Tensor& x, int64_t height, int64_t width) {
  if (x.dim(1) == height && x.dim(2) == width) return x;
  return resample(x, bilinear_taps(x.dim(1), height), bilinear_taps(x.dim(2), width));
}

Tensor resize_to(const Tensor& x, const Tensor& like) { return resize(x, like.dim(1), like.dim(2)); }

struct DecoderOptions {
  std::vector<int64_t> pool_scales;
  int64_t channels;
  double dropout;
};

DecoderOptions read_decoder(Fields& fields) {
  const Range positive = Range::at_least(1);
  fields.choice("kind", {"upernet"});
  return {fields.get("pool_scales", std::vector<int64_t>{1, 2, 3, 6}, positive),
          fields.get<int64_t>("channels", positive), read_rate(fields, "dropout", 0.1)};
}

struct AuxOptions {
  int64_t level, channels;
  double dropout, weight;
};

AuxOptions read_aux(Fields fields, int64_t levels) {
  const AuxOptions o{fields.get<int64_t>("level", Range::between(0, static_cast<double>(levels - 2))),
                     fields.get<int64_t>("channels", Range::at_least(1)), read_rate(fields, "dropout", 0.1),
                     fields.get("weight", 0.4, Range::at_least(0))};
  fields.done();
  return o;
}

}  // namespace

Segmenter::Classifier::Classifier(const Scope& scope, int64_t channels, int64_t classes, double rate)
    : classify(scope, channels, classes, 1, {.weight_init = normal(0.01)}), drop_rate(rate) {}

Tensor Segmenter::Classifier::operator()(const Tensor& x, Pass& pass) const {
  const bool drops = pass.drops() && drop_rate > 0;
  return classify(drops ? channel_dropout(x, drop_rate, pass.key()) : x);
}

Tensor Segmenter::UperNet::operator()(const std::vector<Tensor>& levels, Pass& pass) const {
  const ModuleScope here(path);
  const size_t last = levels.size() - 1;
  const Tensor& highest = levels[last];
  std::vector<Tensor> joined{highest};
  for (size_t i = 0; i < scales.size(); ++i) {
    const Tensor cells =
        resample(highest, average_taps(highest.dim(1), scales[i]), average_taps(highest.dim(2), scales[i]));
    joined.push_back(resize_to(pool[i](cells, pass), highest));
  }
  std::vector<Tensor> x;
  for (size_t i = 0; i < last; ++i) x.push_back(lateral[i](levels[i], pass));
  x.push_back(top(concat(joined, 3), pass));
  for (size_t i = last; i > 0; --i) x[i - 1] = add(x[i - 1], resize_to(x[i], x[i - 1]));
  for (size_t i = 0; i < last; ++i) x[i] = smooth[i](x[i], pass);
  for (size_t i = 1; i <= last; ++i) x[i] = resize_to(x[i], x[0]);
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
  inner["image_size"] = image_size;
  inner["in_channels"] = in_channels;
  Fields decoder_fields = fields.object("decoder");
  const DecoderOptions options = read_decoder(decoder_fields);
  const auto aux_fields = fields.find_object("aux");
  fields.done();
  levels.emplace(inner, decoder_fields, scope);
  decoder_fields.done();
  const int64_t c = options.channels, top = levels->channels.back(), below = levels->count() - 1;
  const auto channels_of = [&](int64_t level) { return levels->channels[static_cast<size_t>(level)]; };
  const Scope here = scope / "decoder";
  decoder.path = here.path();
  decoder.scales = options.pool_scales;
  const auto scales = static_cast<int64_t>(decoder.scales.size());
  for (int64_t i = 0; i < scales; ++i) decoder.pool.emplace_back(here / "pool" / i, top, c, 1);
  decoder.top = ConvUnit(here / "top", top + scales * c, c, 3);
  for (int64_t i = 0; i < below; ++i)
    decoder.lateral.emplace_back(here / "lateral" / i, channels_of(i), c, 1);
  for (int64_t i = 0; i < below; ++i) decoder.smooth.emplace_back(here / "smooth" / i, c, c, 3);
  decoder.fuse = ConvUnit(here / "fuse", levels->count() * c, c, 3);
  decoder.classifier = Classifier(here / "classify", c, classes, options.dropout);
  if (!aux_fields) return;
  const AuxOptions o = read_aux(*aux_fields, levels->count());
  const Scope head = scope / "aux";
  aux = AuxHead{ConvUnit(head / "unit", channels_of(o.level), o.channels, 3),
                Classifier(head / "classify", o.channels, classes, o.dropout), static_cast<size_t>(o.level),
                o.weight, head.path()};
}

Segmenter::Both Segmenter::both(const Tensor& image, Pass& pass, bool has_aux) const {
  const std::vector<Tensor> maps = (*levels)(image, pass);
  const int64_t height = image.dim(2), width = image.dim(3);
  Both result{resize(decoder(maps, pass), height, width), {}};
  if (!aux || !has_aux) return result;
  const auto small = [&] {
    const ModuleScope here(aux->path);
    return aux->classifier(aux->unit(maps[aux->level], pass), pass);
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

// The decoder that SP-ViT's paper reads LV-ViT's blocks with; Swin's authors read four stages with 512
// channels, RMT's with as many, which is too wide for the small networks here.
Json upernet(int64_t channels) {
  return {{"kind", "upernet"}, {"channels", channels}, {"pool_scales", {1, 2, 3, 6}}, {"dropout", 0.1}};
}

Json segment_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  const std::string of_backbone = name.substr(0, name.size() - 4);  // "rmt-s-seg" has the backbone "rmt-s"
  Json backbone = preset(of_backbone, image_size, 0), decoder = upernet(256);
  const std::string arch = backbone.at("arch");
  int64_t level = 2;
  if (arch == "lvvit") {
    backbone["dense"] = false;
    backbone["mix_token"] = false;
    decoder.update({{"out_blocks", {6, 9, 12, 15}}, {"top_channels", 2048}});
  } else if (arch == "swin") {
    backbone["tokenizer"]["patch_size"] = 4;  // of the usual sixteenth of the image, pixels would be lost
    level = 1;                                // of three
  }
  if (of_backbone.ends_with("-xt")) decoder["channels"] = 64;
  const Json channels = decoder["channels"];
  return {{"arch", "segment"},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"backbone", backbone},
          {"decoder", decoder},
          {"aux", {{"level", level}, {"channels", channels}, {"dropout", 0.1}, {"weight", 0.4}}}};
}

}  // namespace

Architecture segment_architecture() {
  return {"segment",
          Task::segment,
          make_network<Segmenter>,
          {"lvvit-s-seg", "sp-vit-s-seg", "rmt-xt-seg", "rmt-s-seg", "sdt-xt-seg", "sdt-h-s-seg", "swin-seg",
           "sl-swin-seg"},
          segment_preset};
}

}  // namespace tessera
