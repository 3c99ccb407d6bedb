// Loads a model that `tessera export --format safetensors` wrote, and predicts the class of a picture:
//
//     predict cifar.safetensors cat.jpg
//
// Config, classes, mean and deviation are in the file. Prints the class's name and its probability.

#include <tessera/data.h>
#include <tessera/engine.h>
#include <tessera/models.h>

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace tessera;

// Pixels / 255 minus the mean, over the deviation, channel by channel. [1, 3, H, W]
Tensor normalised(const Image& image, const Json& mean, const Json& deviation) {
  const int64_t pixels = int64_t{image.height} * image.width;
  std::vector<double> values(static_cast<size_t>(3 * pixels));
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t i = 0; i < pixels; ++i)
      values[static_cast<size_t>(c * pixels + i)] =
          (image.pixels[static_cast<size_t>(3 * i + c)] / 255.0 - mean.at(c).get<double>()) /
          deviation.at(c).get<double>();
  return Tensor::from(values, {1, 3, image.height, image.width});
}

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "predict MODEL.safetensors PICTURE\n"), 2;
  const TensorFile file = read_safetensors(argv[1]);
  const auto fact = [&](const char* name) { return parse_json(file.metadata.at(name), argv[1]); };
  const Model model = build(fact("config"));
  model.parameters.load(file.tensors, argv[1]);

  const Image image = load_image(argv[2]);
  if (image.height != model.image_size() || image.width != model.image_size())
    return std::fprintf(stderr, "predict: %s is not as large as the model's images\n", argv[2]), 1;
  Pass pass;  // evaluation: nothing is recorded or dropped
  const Tensor logits = model.logits(normalised(image, fact("mean"), fact("deviation")), pass);
  const std::vector<double> p = softmax(logits).values();
  const auto best = std::max_element(p.begin(), p.end());
  std::printf("%.2f %%  %s\n", 100 * *best, fact("classes").at(best - p.begin()).get<std::string>().c_str());
} catch (const std::exception& error) {
  return std::fprintf(stderr, "predict: %s\n", error.what()), 1;
}
