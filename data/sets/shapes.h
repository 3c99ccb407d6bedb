#pragma once

#include "data/sets/entry.h"
#include "engine/core/random.h"

namespace tessera {

DatasetEntry shapes_entry();
DatasetEntry shape_scenes_entry();

// The built-in data set, drawn in memory: ten outlines, rotated, scaled, stretched and moved, filled with
// bright textures, on a darker textured background with clutter behind and a little in front. Colour and
// texture carry no information about the class.
struct ShapesOptions {
  int image_size = 32;
  int64_t train = 20000, validation = 2000;  // images; every class equally often
  uint64_t seed = 0;
};

// disc, square, triangle, star, cross, ring, crescent, hexagon, heart, arrow
std::vector<std::string> shape_names();

struct ShapePicture {
  Image image;
  // 1 (in a scene the class) where a shape lies, also under clutter in front; 0 elsewhere. [H, W]
  std::vector<uint8_t> mask;
};

// Draws an image of class `label`; everything else comes from `random`.
ShapePicture draw_shape(int64_t label, int image_size, Random random);

// Equal options give equal pixels. Fails for an image size outside 16 to 512 and for empty splits.
Dataset make_shapes(const ShapesOptions& options);

// For segmentation: each image has two or three shapes among disc, triangle, star, cross and ring, which may
// overlap, with the same clutter. A pixel's class is 0 for the background or 1 + the shape's index among
// those five; clutter in front has the class of what it hides. An image's label is the class of its first
// shape.
std::vector<std::string> scene_names();  // background, disc, triangle, star, cross, ring
ShapePicture draw_scene(int64_t first, int image_size, Random random);
Dataset make_shape_scenes(const ShapesOptions& options);

}  // namespace tessera
