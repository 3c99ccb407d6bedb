#pragma once

// What goes into a model for one picture, and what its loss asks for, for every task.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/inspector/pass.h"

namespace tessera {

// A picture of the size that the model takes, and what is known of it.
struct KnownPicture {
  Image image;
  int64_t label = -1;              // its class; -1: unknown
  std::optional<Image> mask = {};  // the classes of its pixels, as Split::mask has them
};

// What the loss is to ask for.
struct Question {
  int64_t target = -1;  // a class; -1: what is known of the picture, else what the model answers itself
  int64_t time = -1;    // of a diffusion model, from 0; -1: the middle
  uint64_t seed = 0;    // of a diffusion model's noise
};

// How the data set of a model normalises pixels, and its names of the classes, which may be empty.
struct PictureFacts {
  Normalisation normalisation = {};
  std::vector<std::string> class_names = {};
};

// The inputs of the training loss of one picture: "input" [1, 3, H, W] and, by the model's task,
//
//   a classifier       "target" [1]
//   a segmenter        "target" [1, H, W]: the given class at every pixel, else the mask, else the likeliest
//                      class of each pixel
//   a diffusion model  "target" [1], the label "y" [1], the time "t" [1] and "noise" [1, 3, H, W]; the input
//                      is the picture without noise
//
// PassInputs::asks says in words what the loss is. Fails for a class or a time that the model does not have,
// and for a model whose images do not have three channels.
PassInputs inputs_of_picture(Model model, const KnownPicture& picture, const PictureFacts& facts,
                             const Question& question);

// The constants that map pixels to [-1, 1], on which diffusion models are trained.
inline constexpr Normalisation diffusion_normalisation{{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};

}  // namespace tessera
