#include "data/sets/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/sets/canvas.h"
#include "data/sets/outline.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

constexpr double pi = std::numbers::pi;

// These constants set the difficulty. Radii are in units of half the image's side.
struct Radii {
  double smallest, largest;
};
constexpr Radii alone{0.5, 0.8}, in_scene{0.35, 0.55};
constexpr double most_stretch = 1.25;                        // ratio of the axes, at most
constexpr int64_t clutter_behind = 5, clutter_in_front = 1;  // pieces, at most

// Draws an angle and a direction of stretch. `radius`, x and y are in pixels, `stretch` is a ratio.
Placement placement(double radius, double x, double y, double stretch, Random& random) {
  const double angle = random.uniform(0, 2 * pi), cosine = std::cos(angle), sine = std::sin(angle);
  const double along = random.uniform(0, pi), p = std::cos(along), q = std::sin(along);
  const double s = radius * std::sqrt(stretch), t = radius / std::sqrt(stretch);
  const double xx = s * p * p + t * q * q, xy = (s - t) * p * q, yy = s * q * q + t * p * p;  // the stretch
  return {xx * cosine + xy * sine, -xx * sine + xy * cosine, x,
          xy * cosine + yy * sine, -xy * sine + yy * cosine, y};
}

void paint_clutter(Canvas& canvas, int64_t most, Random& random) {
  const double size = canvas.size;
  for (int64_t left = random.below(most + 1); left > 0; --left) {
    const Outline outline =
        random.chance(0.5) ? bar_outline(random.uniform(0.12, 0.4)) : arc_outline(random.uniform(1, 4));
    const double radius = random.uniform(0.05, 0.14) * size;
    const double x = random.uniform(0, size), y = random.uniform(0, size);
    const Outline piece = transformed(outline, placement(radius, x, y, 1, random));
    canvas.paint(coverage(piece, canvas.size), random_texture(any_brightness, random));
  }
}

Outline outline_of(int64_t label) {
  switch (label) {
    case 0:
      return disc_outline();
    case 1:
      return regular_outline(4);
    case 2:
      return regular_outline(3);
    case 3:
      return star_outline();
    case 4:
      return cross_outline();
    case 5:
      return ring_outline();
    case 6:
      return crescent_outline();
    case 7:
      return regular_outline(6);
    case 8:
      return heart_outline();
    case 9:
      return arrow_outline();
    default:
      fail("shapes: class ", label, "; there are ", shape_names().size());
  }
}

// Draws a place where the shape lies inside the image, except for the tips of long shapes.
std::vector<float> place_shape(int64_t label, int size, const Radii& radii, Random& random) {
  const double half = size / 2.0, radius = half * random.uniform(radii.smallest, radii.largest),
               reach = half - radius;
  const double x = half + reach * random.uniform(-1, 1), y = half + reach * random.uniform(-1, 1);
  const double stretch = random.uniform(1, most_stretch);
  return coverage(transformed(outline_of(label), placement(radius, x, y, stretch, random)), size);
}

struct Drawn {
  std::vector<uint8_t> pixels, masks;  // [count, size, size, 3], [count, size, size]
  std::vector<int32_t> labels;         // first, first + 1, .. first + classes - 1, and again
};

using Draw = ShapePicture(int64_t label, int image_size, Random random);

Drawn draw_all(Draw draw, int64_t first, int64_t classes, int64_t count, const ShapesOptions& options,
               uint64_t tag) {
  const auto area = int64_t{options.image_size} * options.image_size;
  Drawn all{std::vector<uint8_t>(static_cast<size_t>(count * area * 3)),
            std::vector<uint8_t>(static_cast<size_t>(count * area)),
            std::vector<int32_t>(static_cast<size_t>(count))};
  const Random random = Random(options.seed).split(tag);
  parallel_for(count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t label = first + i % classes;
      const auto [image, mask] = draw(label, options.image_size, random.split(static_cast<uint64_t>(i)));
      std::copy(image.pixels.begin(), image.pixels.end(), all.pixels.begin() + i * area * 3);
      std::copy(mask.begin(), mask.end(), all.masks.begin() + i * area);
      all.labels[static_cast<size_t>(i)] = static_cast<int32_t>(label);
    }
  });
  return all;
}

std::shared_ptr<const Split> draw_split(int64_t count, const ShapesOptions& options, uint64_t tag,
                                        const char* name) {
  Drawn all = draw_all(draw_shape, 0, std::ssize(shape_names()), count, options, tag);
  return std::make_shared<StoredSplit>(options.image_size, options.image_size, 3, std::move(all.pixels),
                                       std::move(all.labels), std::string("shapes, ") + name + " split");
}

std::shared_ptr<const Split> draw_scenes(int64_t count, const ShapesOptions& options, uint64_t tag,
                                         const char* name) {
  Drawn all = draw_all(draw_scene, 1, std::ssize(scene_names()) - 1, count, options, tag);
  for (uint8_t& k : all.masks) ++k;  // to class + 1, as Split::mask returns
  return std::make_shared<MaskedSplit>(options.image_size, options.image_size, std::move(all.pixels),
                                       std::move(all.masks), all.labels,
                                       std::string("shapes-seg, ") + name + " split");
}

}  // namespace

std::vector<std::string> shape_names() {
  return {"disc", "square", "triangle", "star", "cross", "ring", "crescent", "hexagon", "heart", "arrow"};
}

ShapePicture draw_shape(int64_t label, int image_size, Random random) {
  const size_t area = static_cast<size_t>(image_size) * static_cast<size_t>(image_size);
  Canvas canvas{image_size, std::vector<Paint>(area)};
  const Texture background = random_texture(dark, random);
  canvas.paint(std::vector<float>(area, 1.0f), background);
  paint_clutter(canvas, clutter_behind, random);
  const std::vector<float> shape = place_shape(label, image_size, alone, random);
  canvas.paint(shape, contrasting_texture(background, random));
  paint_clutter(canvas, clutter_in_front, random);

  ShapePicture picture{canvas.to_image(random), std::vector<uint8_t>(area)};
  for (size_t i = 0; i < area; ++i) picture.mask[i] = shape[i] >= 0.5f ? 1 : 0;
  return picture;
}

std::vector<std::string> scene_names() { return {"background", "disc", "triangle", "star", "cross", "ring"}; }

ShapePicture draw_scene(int64_t first, int image_size, Random random) {
  constexpr std::array<int64_t, 5> labels{0, 2, 3, 4, 5};  // of shape_names(), by class - 1
  check(first >= 1 && first <= std::ssize(labels), "shapes: class ", first, " of a scene's shape; 1 to ",
        labels.size(), " are drawn");
  const size_t area = static_cast<size_t>(image_size) * static_cast<size_t>(image_size);
  Canvas canvas{image_size, std::vector<Paint>(area)};
  std::vector<uint8_t> mask(area);
  const Texture background = random_texture(dark, random);
  canvas.paint(std::vector<float>(area, 1.0f), background);
  paint_clutter(canvas, clutter_behind, random);
  for (int64_t left = 2 + random.below(2), k = first; left > 0;
       --left, k = 1 + random.below(std::ssize(labels))) {
    const std::vector<float> shape =
        place_shape(labels[static_cast<size_t>(k - 1)], image_size, in_scene, random);
    canvas.paint(shape, contrasting_texture(background, random));
    for (size_t i = 0; i < area; ++i)
      if (shape[i] >= 0.5f) mask[i] = static_cast<uint8_t>(k);
  }
  paint_clutter(canvas, clutter_in_front, random);
  return {canvas.to_image(random), std::move(mask)};
}

namespace {

void check_options(const ShapesOptions& options) {
  check(options.image_size >= 16 && options.image_size <= 512, "shapes: image size ", options.image_size,
        "; 16 to 512 pixels are drawn");
  check(options.train > 0 && options.validation > 0, "shapes: ", options.train, " training and ",
        options.validation, " validation images; both need one");
}

}  // namespace

Dataset make_shapes(const ShapesOptions& options) {
  check_options(options);
  Dataset dataset;
  dataset.name = "shapes";
  dataset.class_names = shape_names();
  dataset.image_shape = {3, options.image_size, options.image_size};
  dataset.normalisation = {{0.40f, 0.40f, 0.40f}, {0.23f, 0.23f, 0.23f}};
  dataset.train = draw_split(options.train, options, 0, "train");
  dataset.validation = draw_split(options.validation, options, 1, "validation");
  return dataset;
}

Dataset make_shape_scenes(const ShapesOptions& options) {
  check_options(options);
  Dataset dataset;
  dataset.name = "shapes-seg";
  dataset.class_names = scene_names();
  dataset.image_shape = {3, options.image_size, options.image_size};
  dataset.normalisation = {{0.40f, 0.40f, 0.40f}, {0.23f, 0.23f, 0.23f}};
  dataset.train = draw_scenes(options.train, options, 0, "train");
  dataset.validation = draw_scenes(options.validation, options, 1, "validation");
  return dataset;
}

namespace {

ImageSizes drawn_sizes() { return {.least = 16, .most = 512, .reason = "16 to 512 pixels are drawn"}; }

ShapesOptions shapes_options(const DatasetOptions& options) {
  ShapesOptions shapes;
  shapes.seed = options.seed;
  if (options.image_size > 0) shapes.image_size = options.image_size;
  if (options.train_images > 0) shapes.train = options.train_images;
  if (options.validation_images > 0) shapes.validation = options.validation_images;
  return shapes;
}

}  // namespace

DatasetEntry shapes_entry() {
  return {.name = "shapes",
          .open = [](const std::filesystem::path&,
                     const DatasetOptions& options) { return make_shapes(shapes_options(options)); },
          .sizes = drawn_sizes(),
          .needs_folder = false,
          .side = ShapesOptions{}.image_size,
          .classes = std::ssize(shape_names())};
}

DatasetEntry shape_scenes_entry() {
  return {.name = "shapes-seg",
          .open = [](const std::filesystem::path&,
                     const DatasetOptions& options) { return make_shape_scenes(shapes_options(options)); },
          .sizes = drawn_sizes(),
          .needs_folder = false,
          .has_masks = true,
          .side = ShapesOptions{}.image_size,
          .classes = std::ssize(scene_names())};
}

}  // namespace tessera
