#pragma once

#include <vector>

#include "apps/training/checkpoint.h"
#include "data/formats/image.h"

namespace tessera {

struct SampleOptions;  // models/diffusion.h

// A grid of images: one row for each class, `count` images a row, drawn from `seed`.
struct SampleGrid {
  std::vector<int64_t> classes;
  int64_t count = 8;
  uint64_t seed = 0;
};

// Draws the grid with a diffusion model; the same bits whatever the thread count. Each row is under the name
// of its class, and small images are enlarged by a whole factor. Fails for a checkpoint of another kind of
// model, with a message that begins with `where`, and for a sheet past the limits of image.h.
Image draw_sample_grid(const Checkpoint& checkpoint, const SampleGrid& grid, const SampleOptions& how,
                       Device device, const std::string& where);

// An image of a model [3, size, size], normalised, as near as bytes come.
Image drawn_image(const float* pixels, int size, const Normalisation& normalisation);

// Fails unless the checkpoint is of a diffusion model of pictures or latents; the message begins with
// `where`.
void expect_drawing_model(const Checkpoint& checkpoint, const std::string& where);

// The default sampling: DDIM in `steps` steps, or in all steps of the model's chain if it has fewer, with
// guidance 1.5 for a model that was trained without labels too (label dropout), otherwise 1. The pixels of
// pictures are clipped, latents are not.
SampleOptions default_sampling(const Model& model, int64_t steps);
// Draws the grid with the default sampling.
Image draw_default_grid(const Checkpoint& checkpoint, const SampleGrid& grid, int64_t steps, Device device,
                        const std::string& where);

// The classes that are drawn by default: the first ten.
std::vector<int64_t> default_classes(const std::vector<std::string>& names);

}  // namespace tessera
