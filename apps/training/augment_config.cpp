#include "apps/training/augment_config.h"

#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace tessera {

namespace {

const Range share = Range::between(0, 1);
constexpr std::array fills{"mean", "zero", "noise"};

// A pair of numbers from the smaller to the larger.
std::pair<double, double> read_span(Fields& f, const char* key, double low, double high, const Range& range) {
  const auto span = f.get<std::vector<double>>(key, {low, high}, range);
  if (span.size() != 2 || span[0] > span[1]) f.fail_at(key, "is no [smallest, largest]");
  return {span[0], span[1]};
}

ErasingOptions read_erasing(Fields f, ErasingOptions e) {
  e.probability = f.get("probability", e.probability, share);
  std::tie(e.min_area, e.max_area) = read_span(f, "area", e.min_area, e.max_area, share);
  e.min_ratio = f.get("min_ratio", e.min_ratio, Range::between(0.01, 1));
  e.log_ratio = f.get("log_ratio", e.log_ratio);
  const std::string fill = f.choice("fill", {"mean", "zero", "noise"}, fills[static_cast<size_t>(e.fill)]);
  e.fill = fill == "mean"   ? ErasingOptions::Fill::mean
           : fill == "zero" ? ErasingOptions::Fill::zero
                            : ErasingOptions::Fill::noise;
  f.done();
  return e;
}

ResizedCropOptions read_resized_crop(Fields f) {
  ResizedCropOptions r;
  std::tie(r.min_area, r.max_area) = read_span(f, "area", r.min_area, r.max_area, share);
  r.min_ratio = f.get("min_ratio", r.min_ratio, Range::between(0.01, 1));
  r.filter = f.choice("filter", {"bilinear", "bicubic"}, "bilinear") == "bicubic" ? Filter::bicubic
                                                                                  : Filter::bilinear;
  f.done();
  return r;
}

SceneCropOptions read_scene_crop(Fields f) {
  SceneCropOptions s;
  std::tie(s.min_scale, s.max_scale) =
      read_span(f, "scale", s.min_scale, s.max_scale, Range::between(0.01, 16));
  s.longest = f.get("longest", s.longest, Range::between(1, 16));
  s.most_of_one_class = f.get("most_of_one_class", s.most_of_one_class, share);
  f.done();
  return s;
}

PhotometricOptions read_photometric(Fields f) {
  PhotometricOptions p;
  const Range factor = Range::between(0, 16);
  p.brightness = f.get("brightness", p.brightness, Range::between(0, 255));
  std::tie(p.min_contrast, p.max_contrast) = read_span(f, "contrast", p.min_contrast, p.max_contrast, factor);
  std::tie(p.min_saturation, p.max_saturation) =
      read_span(f, "saturation", p.min_saturation, p.max_saturation, factor);
  p.hue = f.get("hue", p.hue, Range::between(0, 90));
  f.done();
  return p;
}

RandAugmentOptions read_randaugment(Fields f) {
  RandAugmentOptions r;
  r.operations = f.get("operations", r.operations, Range::between(1, 100));
  r.magnitude = f.get("magnitude", r.magnitude, Range::between(0, 10));
  r.deviation = f.get("deviation", r.deviation, Range::between(0, 10));
  r.probability = f.get("probability", r.probability, share);
  f.done();
  return r;
}

MixOptions read_mix(Fields& f, MixOptions m) {
  const Range alpha = Range::between(0, 1000);
  m.mixup = f.get("mixup", m.mixup, alpha);
  m.cutmix = f.get("cutmix", m.cutmix, alpha);
  m.probability = f.get("mix_probability", m.probability, share);
  m.cutmix_share = f.get("cutmix_share", m.cutmix_share, share);
  return m;
}

std::string or_none(const std::string& name) { return name.empty() ? "none" : name; }
std::string from_none(const std::string& name) { return name == "none" ? "" : name; }

}  // namespace

AugmentOptions read_augment(Fields f, AugmentOptions a) {
  a.flip = f.get("flip", a.flip);
  a.crop_padding = static_cast<int>(f.get<int64_t>("crop_padding", a.crop_padding, Range::between(0, 4096)));
  a.autoaugment = from_none(
      f.choice("autoaugment", {"none", "cifar10", "svhn", "imagenet"}, or_none(a.autoaugment).c_str()));
  if (auto scene = f.find_object("scene_crop")) a.scene_crop = read_scene_crop(*scene);
  if (auto photometric = f.find_object("photometric")) a.photometric = read_photometric(*photometric);
  if (auto crop = f.find_object("resized_crop")) a.resized_crop = read_resized_crop(*crop);
  if (auto rand = f.find_object("randaugment")) a.randaugment = read_randaugment(*rand);
  if (auto erasing = f.find_object("erasing")) a.erasing = read_erasing(*erasing, a.erasing);
  a.mix = read_mix(f, a.mix);
  f.done();
  return a;
}

Json to_json(const AugmentOptions& a) {
  const ErasingOptions& e = a.erasing;
  Json crop, rand, scene, photometric;  // null: none
  if (a.scene_crop)
    scene = {{"scale", {a.scene_crop->min_scale, a.scene_crop->max_scale}},
             {"longest", a.scene_crop->longest},
             {"most_of_one_class", a.scene_crop->most_of_one_class}};
  if (a.photometric)
    photometric = {{"brightness", a.photometric->brightness},
                   {"contrast", {a.photometric->min_contrast, a.photometric->max_contrast}},
                   {"saturation", {a.photometric->min_saturation, a.photometric->max_saturation}},
                   {"hue", a.photometric->hue}};
  if (a.resized_crop)
    crop = {{"area", {a.resized_crop->min_area, a.resized_crop->max_area}},
            {"min_ratio", a.resized_crop->min_ratio},
            {"filter", a.resized_crop->filter == Filter::bicubic ? "bicubic" : "bilinear"}};
  if (a.randaugment)
    rand = {{"operations", a.randaugment->operations},
            {"magnitude", a.randaugment->magnitude},
            {"deviation", a.randaugment->deviation},
            {"probability", a.randaugment->probability}};
  return {{"scene_crop", scene},
          {"resized_crop", crop},
          {"flip", a.flip},
          {"crop_padding", a.crop_padding},
          {"autoaugment", or_none(a.autoaugment)},
          {"randaugment", rand},
          {"photometric", photometric},
          {"erasing",
           {{"probability", e.probability},
            {"area", {e.min_area, e.max_area}},
            {"min_ratio", e.min_ratio},
            {"log_ratio", e.log_ratio},
            {"fill", fills[static_cast<size_t>(e.fill)]}}},
          {"mixup", a.mix.mixup},
          {"cutmix", a.mix.cutmix},
          {"mix_probability", a.mix.probability},
          {"cutmix_share", a.mix.cutmix_share}};
}

}  // namespace tessera
