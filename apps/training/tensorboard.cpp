#include "apps/training/tensorboard.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/training/model_graph.h"
#include "data/formats/image.h"

namespace tessera {

namespace {

constexpr int64_t pictures_a_side = 4;

// The first images of a batch [B, 3, H, W] as one square sheet, up to 4 x 4.
Image contact_of(const Tensor& images, const Normalisation& n) {
  const int64_t height = images.dim(2), width = images.dim(3),
                side = std::min(pictures_a_side,
                                static_cast<int64_t>(std::sqrt(static_cast<double>(images.dim(0)))));
  Image sheet(static_cast<int>(side * height), static_cast<int>(side * width));
  const float* pixels = images.data<float>();
  for (int64_t i = 0; i < side * side; ++i)
    for (size_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x, ++pixels) {
          const float value = 255 * (*pixels * n.deviation[c] + n.mean[c]);
          sheet.at(static_cast<int>(i / side * height + y), static_cast<int>(i % side * width + x))[c] =
              static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
        }
  return sheet;
}

// The numbers of a tensor in thirty intervals of equal width.
Histogram histogram_of(const std::string& tag, const Tensor& tensor) {
  constexpr double intervals = 30;
  const std::vector<double> values = tensor.values();
  const auto [low, high] = std::ranges::minmax(values);
  Histogram h{.tag = tag, .lowest = low, .highest = high, .count = static_cast<double>(values.size())};
  const double width = low < high ? (high - low) / intervals : 1;
  h.counts.resize(static_cast<size_t>(intervals));
  for (const double value : values) {
    h.sum += value;
    h.squares += value * value;
    ++h.counts[static_cast<size_t>(std::min((value - low) / width, intervals - 1))];
  }
  for (size_t i = 1; i <= h.counts.size(); ++i) h.limits.push_back(low + width * static_cast<double>(i));
  return h;
}

}  // namespace

void TensorBoard::begin(const Json& config) {
  file_.settings(config);
  file_.graph(graph_of(config.at("model")));
}

void TensorBoard::step(int64_t step, const StepResult& result, double lr, const Batch& batch) {
  if (!shown_ && batch.images.dim(1) == 3) {  // not of latents
    const Image sheet = contact_of(batch.images.to(Device::cpu).to(DType::f32), normalisation_);
    const std::vector<uint8_t> png = encode_png(sheet);
    file_.image(step, "train/pictures", sheet.height, sheet.width,
                {reinterpret_cast<const char*>(png.data()), png.size()});
    shown_ = true;
  }
  if (result.trouble) return;
  const std::pair<std::string, double> scalars[] = {
      {"train/loss", result.loss}, {"train/gradient_norm", result.gradient_norm}, {"train/lr", lr}};
  file_.scalars(step, scalars);
  if (!result.layers.empty()) layers(step, result.layers);
}

// Each number of each layer under watch/.
void TensorBoard::layers(int64_t step, const std::vector<LayerFigures>& layers) {
  std::vector<std::pair<std::string, double>> scalars;
  for (const LayerFigures& f : layers)
    for (const LayerColumn& column : layer_columns())
      if (const double value = f.*column.value; !std::isnan(value))
        scalars.emplace_back(std::string("watch/") + column.name + "/" + f.layer +
                                 (f.head < 0 ? "" : ".head." + std::to_string(f.head)),
                             value);
  file_.scalars(step, scalars);
}

void TensorBoard::epoch(int64_t step, const Json& details, const Parameters& weights) {
  static constexpr std::pair<const char*, const char*> tags[] = {
      {"train_loss", "epoch/train_loss"},
      {"train_accuracy", "epoch/train_accuracy"},
      {"skipped", "epoch/skipped_steps"},
      {"images_per_second", "epoch/images_per_second"},
      {"loss", "validation/loss"},
      {"top1", "validation/top1"},
      {"top5", "validation/top5"},
      {"mean_iou", "validation/mean_iou"},
      {"pixel_accuracy", "validation/pixel_accuracy"}};
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [key, tag] : tags)
    if (details.contains(key) && details.at(key).is_number())
      scalars.emplace_back(tag, details.at(key).get<double>());
  file_.scalars(step, scalars);
  std::vector<Histogram> histograms;
  for (const Parameter& p : weights)
    if (p.trainable && p.value.elements() > 0)
      histograms.push_back(histogram_of("weights/" + p.name, p.value));
  file_.histograms(step, histograms);
  file_.flush();
}

}  // namespace tessera
