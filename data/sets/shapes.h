#pragma once

#include "data/dataset.h"
#include "engine/core/random.h"

namespace tessera {

// The built-in data set, made in memory: ten outlines, turned, scaled, stretched and moved, filled with
// bright colours and textures, over a darker textured background with clutter behind and a little in front.
// Colour and texture say nothing about the class.
struct ShapesOptions {
  int image_size = 32;
  int64_t train = 20000, validation = 2000;  // each class equally often
  uint64_t seed = 0;
};

// disc, square, triangle, star, cross, ring, crescent, hexagon, heart, arrow
std::vector<std::string> shape_names();

struct ShapePicture {
  Image image;
  std::vector<uint8_t>
      mask;  // 1, or a scene's class, where the shape lies, under clutter too; 0 elsewhere. [H, W]
};

// One picture of class `label`; everything else is drawn from `random`.
ShapePicture draw_shape(int64_t label, int image_size, Random random);

// The same options give the same pixels.
Dataset make_shapes(const ShapesOptions& options);

// For segmentation: two or three of disc, triangle, star, cross and ring in each picture, one perhaps over
// the other, amid the same clutter, and each pixel's class: 0 background, 1 + the shape's number of those
// five; clutter in front has the class of what it hides. A picture's label is its first shape's class.
std::vector<std::string> scene_names();  // background, disc, triangle, star, cross, ring
ShapePicture draw_scene(int64_t first, int image_size, Random random);
Dataset make_shape_scenes(const ShapesOptions& options);

}  // namespace tessera
