#include "apps/reporting/pictures_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/reporting/chart.h"
#include "apps/reporting/classes_section.h"
#include "apps/reporting/html.h"
#include "apps/reporting/sample_grid.h"
#include "models/segment_inference.h"

namespace tessera {

namespace {

constexpr int64_t most_classes = 10, images_a_class = 6, sampling_steps = 25;
constexpr int64_t most_swatches = 40;
constexpr int mask_side = 128;

// Tints each pixel with the colour of its class; pixels without a class keep their own colour.
Image colored(const Image& image, const int64_t* classes) {
  Image out = image;
  for (int64_t i = 0; i < int64_t{image.height} * image.width; ++i) {
    if (classes[i] == no_class) continue;
    const auto color = class_color(classes[i]);
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& pixel = out.pixels[static_cast<size_t>(3 * i) + c];
      pixel = static_cast<uint8_t>((pixel + 2 * color[c]) / 3);
    }
  }
  return out;
}

std::string swatches(const std::vector<std::string>& names) {
  std::string out = "<p class=\"note\">";
  for (int64_t k = 0; k < std::min(most_swatches, std::ssize(names)); ++k) {
    const auto [r, g, b] = class_color(k);
    out += fmt::format(
        "<span style=\"white-space:nowrap;margin-right:14px\"><i class=\"swatch\" "
        "style=\"background:rgb({},{},{})\"></i>{}</span> ",
        r, g, b, escaped(names[static_cast<size_t>(k)]));
  }
  return out + (std::ssize(names) > most_swatches ? "..." : "") + "</p>";
}

// One picture, its mask and the predicted mask, side by side.
std::string trio(const Checkpoint& checkpoint, const Pipeline& pipeline, const Judgement& j,
                 const Dataset& dataset, Device device) {
  Image image, mask;
  dataset.validation->image(j.picture, image);
  dataset.validation->mask(j.picture, mask);
  Image used = image;
  const Tensor input = Tensor::empty({1, 3, image.height, image.width});
  pipeline(used, Random(0), input.data<float>());
  std::vector<int64_t> label(static_cast<size_t>(int64_t{image.height} * image.width));
  pipeline.mask(mask, Random(0), label.data());
  Pass pass;
  const Tensor predicted = largest_class(checkpoint.model.logits(input.to(device), pass)).to(Device::cpu);
  const auto shown = [](const Image& each, const char* what) {
    return picture(thumbnail(each), mask_side, what);
  };
  return fmt::format(
      "<figure title=\"{}\"><div class=\"row\">{}{}{}</div><figcaption>{} of the pixels right</figcaption>"
      "</figure>\n",
      escaped(dataset.validation->source(j.picture)), shown(image, "picture"),
      shown(colored(image, label.data()), "mask"),
      shown(colored(image, predicted.data<int64_t>()), "prediction"),
      number_text(j.right, NumberStyle::percent));
}

}  // namespace

// Hues are a golden angle apart; every other group of eight classes is darker.
std::array<uint8_t, 3> class_color(int64_t k) {
  const double hue = std::fmod(static_cast<double>(k) * 0.381966, 1.0) * 6;
  const double value = k / 8 % 2 == 0 ? 0.92 : 0.6, chroma = value * 0.72;
  std::array<uint8_t, 3> color{};
  for (size_t c = 0; c < 3; ++c) {
    const double distance = std::abs(std::fmod(hue + 6 - 2 * static_cast<double>(c) + 3, 6.0) - 3);
    const double part = std::clamp(2 - distance, 0.0, 1.0);
    color[c] = static_cast<uint8_t>(std::lround(255 * (value - chroma + chroma * part)));
  }
  return color;
}

std::string masks_section(const Checkpoint& checkpoint, const std::vector<Judgement>& judgements,
                          const Dataset& dataset, size_t count, Device device) {
  const Pipeline pipeline(checkpoint.data.empty_dataset());
  std::string out;
  for (const Judgement& j : worst_judgements(judgements, Task::segment, count))
    out += trio(checkpoint, pipeline, j, dataset, device);
  return heading("Worst pictures") +
         cards(
             {card("Fewest right pixels", "the picture, its mask, what was predicted",
                   swatches(dataset.class_names) + "<div class=\"pictures trios\">" + out + "</div>", true)});
}

std::string samples_section(const Checkpoint& checkpoint, Device device) {
  if (checkpoint.data.latent_scale > 0)
    return heading("Samples") +
           cards({card(
               "Drawn latents", "tessera sample RUN --count N --format npz",
               "<p class=\"note\">This model draws an autoencoder's latents; its decoder makes pictures of "
               "them.</p>",
               true)});
  std::vector<int64_t> classes = default_classes(checkpoint.data.class_names);
  classes.resize(std::min<size_t>(classes.size(), most_classes));
  const Image grid =
      draw_default_grid(checkpoint, {classes, images_a_class, 0}, sampling_steps, device, "report");
  return heading("Samples") +
         cards({card("Drawn images",
                     fmt::format("DDIM in at most {} steps, seed 0; a row a class", sampling_steps),
                     picture(grid, grid.height, "samples"), true)});
}

}  // namespace tessera
