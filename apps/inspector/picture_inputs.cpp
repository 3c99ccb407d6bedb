#include "apps/inspector/picture_inputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/augment/pipeline.h"
#include "engine/core/error.h"
#include "engine/ops/noise.h"

namespace tessera {

namespace {

constexpr int64_t no_class = 255;  // of a pixel, in a segmenter's targets

Tensor normalised(const Image& picture, const Normalisation& normalisation, DType dtype) {
  Dataset facts;
  facts.image_shape = {3, picture.height, picture.width};
  facts.normalisation = normalisation;
  const Pipeline pipeline(facts);
  Image used = picture;
  const Tensor input = Tensor::empty({1, 3, picture.height, picture.width});
  pipeline(used, Random(0), input.data<float>());
  return input.to(dtype);
}

// The largest of the K classes' logits [1, K, ...] at each place. [...]
std::vector<int64_t> likeliest(const Tensor& logits) {
  const std::vector<double> values = logits.values();
  const int64_t classes = logits.dim(1), places = logits.elements() / classes;
  std::vector<int64_t> best(static_cast<size_t>(places), 0);
  for (int64_t k = 1; k < classes; ++k)
    for (int64_t i = 0; i < places; ++i) {
      int64_t& chosen = best[static_cast<size_t>(i)];
      if (values[static_cast<size_t>(k * places + i)] > values[static_cast<size_t>(chosen * places + i)])
        chosen = k;
    }
  return best;
}

std::vector<int64_t> own_answer(const PassInputs& pass) {
  Pass state;
  return likeliest(pass.model.logits(pass.inputs.at("input"), state));
}

// "class 3 (cat)"
std::string class_words(const PassInputs& pass, int64_t label) {
  const auto k = static_cast<size_t>(label);
  return "class " + std::to_string(label) +
         (k < pass.class_names.size() ? " (" + pass.class_names[k] + ")" : "");
}

void ask_class(PassInputs& pass, const KnownPicture& picture, const Question& question) {
  const bool known = picture.label >= 0 && picture.label < pass.model.num_classes();
  const int64_t target = question.target >= 0 ? question.target
                         : known              ? picture.label
                                              : own_answer(pass).front();
  pass.inputs["target"] = Tensor::from(std::vector<int64_t>{target}, {1});
  pass.asks = "the cross entropy of " + class_words(pass, target) +
              (pass.model.token_targets ? ", of the image and, half as much, of its patches" : "");
}

void ask_pixels(PassInputs& pass, const KnownPicture& picture, const Question& question) {
  const int64_t pixels = int64_t{picture.image.height} * picture.image.width;
  std::vector<int64_t> target;
  if (question.target >= 0) {
    target.assign(static_cast<size_t>(pixels), question.target);
    pass.asks = class_words(pass, question.target) + " at every pixel";
  } else if (picture.mask) {
    for (int64_t i = 0; i < pixels; ++i) {
      const int64_t byte = picture.mask->pixels[static_cast<size_t>(3 * i)];
      check(byte <= pass.model.num_classes(), "inspect: the picture's mask has class ", byte - 1,
            "; the model has 0 to ", pass.model.num_classes() - 1);
      target.push_back(byte == 0 ? no_class : byte - 1);
    }
    pass.asks = "each pixel's own class";
  } else {
    target = own_answer(pass);
    pass.asks = "the class of each pixel that the model finds likeliest";
  }
  pass.asks = "the mean cross entropy of " + pass.asks;
  pass.inputs["target"] = Tensor::from(target, {1, picture.image.height, picture.image.width});
}

void ask_noise(PassInputs& pass, const KnownPicture& picture, const Question& question) {
  const int64_t steps = pass.model.config.value("steps", int64_t{1000});
  check(question.time < steps, "inspect: --time ", question.time, "; the model has times 0 to ", steps - 1);
  const bool known = picture.label >= 0 && picture.label < pass.model.num_classes();
  const int64_t label = question.target >= 0 ? question.target : known ? picture.label : 0;
  const int64_t time = question.time >= 0 ? question.time : steps / 2;
  const Tensor of_label = Tensor::from(std::vector<int64_t>{label}, {1}), &input = pass.inputs.at("input");
  pass.inputs["target"] = of_label;
  pass.inputs["y"] = of_label.clone();
  pass.inputs["t"] = Tensor::from(std::vector<int64_t>{time}, {1});
  pass.inputs["noise"] = normal_noise(input.shape(), question.seed).to(input.dtype());
  pass.asks = "the noise in the picture at time " + std::to_string(time) + " of " + std::to_string(steps) +
              ", told " + class_words(pass, label);
}

}  // namespace

PassInputs inputs_of_picture(Model model, const KnownPicture& picture, const PictureFacts& facts,
                             const Question& question) {
  const int64_t classes = model.num_classes(), channels = model.in_channels();
  check(question.target < classes, "inspect: class ", question.target, "; the model has 0 to ", classes - 1);
  check(channels == 3, "inspect: the model takes images of ", channels,
        " channels (latents of an autoencoder); a picture has 3. Inspect a fixture of it, which has its "
        "inputs");
  const Task task = model.task;
  check(task == Task::diffuse || question.time < 0, "inspect: --time is of diffusion models (dit-*)");
  const DType dtype = model.parameters.begin()->value.dtype();
  PassInputs pass{.model = std::move(model),
                  .trains = true,
                  .class_names = facts.class_names,
                  .picture = picture.image,
                  .normalisation = facts.normalisation};
  pass.inputs["input"] = normalised(picture.image, facts.normalisation, dtype);
  const auto ask = task == Task::classify ? ask_class : task == Task::segment ? ask_pixels : ask_noise;
  ask(pass, picture, question);
  return pass;
}

}  // namespace tessera
