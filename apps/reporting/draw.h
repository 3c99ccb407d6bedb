#pragma once

#include <vector>

#include "apps/training/checkpoint.h"
#include "data/formats/image.h"

namespace tessera {

struct SampleOptions;  // models/diffusion.h

// What a grid of images shows: a row a class, `count` in each row, drawn from `seed`.
struct SampleGrid {
  std::vector<int64_t> classes;
  int64_t count = 8;
  uint64_t seed = 0;
};

// Images that a diffusion model draws, on white, the same whatever the thread count. Fails for a checkpoint
// of another model, and for a picture past the limits of image.h, in the name of `where`.
Image draw_grid(const Checkpoint& checkpoint, const SampleGrid& grid, const SampleOptions& how, Device device,
                const std::string& where);

// How it draws where nothing else is asked for: DDIM in `steps` steps, or in all where the chain has fewer,
// with guidance 1.5 where the model knows an image of no class.
SampleOptions usual_sampling(const Model& model, int64_t steps);
// The same, drawn.
Image draw_usual(const Checkpoint& checkpoint, const SampleGrid& grid, int64_t steps, Device device,
                 const std::string& where);

// The classes that are drawn where none are named: the first ten.
std::vector<int64_t> usual_classes(const std::vector<std::string>& names);

}  // namespace tessera
