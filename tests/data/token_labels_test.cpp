#include "data/token_labels.h"

#include <cmath>
#include <limits>

#include "data/augment/crop.h"
#include "data/loader.h"
#include "data/registry.h"
#include "data/subset.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"
#include "tests/error_of.h"

namespace tessera {

namespace {

constexpr int64_t pictures = 6, ranks = 2, side = 3, numbers = 2 * ranks * side * side;

// Map i: scores from 10 i on, classes 0 and 1 alternating.
std::vector<double> map_of(int64_t i) {
  std::vector<double> map;
  for (int64_t at = 0; at < ranks * side * side; ++at) map.push_back(static_cast<double>(10 * i + at) / 2);
  for (int64_t at = 0; at < ranks * side * side; ++at)
    map.push_back(static_cast<double>((at % (side * side) + at / (side * side)) % 2));
  return map;
}

void put_map(const std::filesystem::path& path, const std::vector<double>& map,
             const Shape& shape = {2, ranks, side, side}, DType dtype = DType::f32) {
  std::filesystem::create_directories(path.parent_path());
  write_safetensors(path, {{"token_labels", Tensor::from(map, shape, dtype)}});
}

// Images of two classes, train/a/0.png to train/b/5.png, of 40 x 60 pixels, and their maps.
struct Labelled {
  Labelled() {
    for (int i = 0; i < pictures; ++i) {
      const std::string name = std::string(i < 3 ? "a" : "b") + "/" + std::to_string(i);
      put_png(folder / ("train/" + name + ".png"), random_image(40, 60, static_cast<uint64_t>(i)));
      put_png(folder / ("val/" + name + ".png"), random_image(40, 60, static_cast<uint64_t>(i)));
      put_map(map(i), map_of(i));
    }
    dataset = open_dataset("folder", folder.path(), {.image_size = 16});
  }

  std::filesystem::path map(int i) const {
    return folder / ("maps/" + std::string(i < 3 ? "a" : "b") + "/" + std::to_string(i) + ".safetensors");
  }
  // The message with which this content of map i is refused.
  std::string complaint(int i, const std::vector<double>& bytes, const Shape& shape = {2, ranks, side, side},
                        DType dtype = DType::f32) const {
    put_map(map(i), bytes, shape, dtype);
    const std::string message = error_of([&] {
      std::vector<float> to(numbers);
      TokenLabels(folder / "maps", dataset).read(i, to.data());
    });
    put_map(map(i), map_of(i));
    CHECK(message.find(map(i).string()) != std::string::npos);
    return message;
  }

  TemporaryFolder folder;
  Dataset dataset;
};

bool holds(const std::string& text, const std::string& part) {
  INFO("text: ", text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("token labels: each picture's own map, of a part of the pictures too") {
  Labelled data;
  const TokenLabels all(data.folder / "maps", data.dataset);
  CHECK(all.shape() == Shape{2, ranks, side, side});
  data.dataset.train = subset(data.dataset.train, 3, 1);
  const TokenLabels some(data.folder / "maps", data.dataset);
  for (int64_t i = 0; i < 3; ++i) {
    std::vector<float> map(numbers);
    some.read(i, map.data());
    const std::string file = std::filesystem::path(data.dataset.train->source(i)).stem();
    const std::vector<double> wanted = map_of(std::stoi(file));
    CHECK(std::equal(map.begin(), map.end(), wanted.begin(), wanted.end()));
  }
}

TEST_CASE("token labels: classes that the data set leaves out count as those that are not named") {
  Labelled data;
  std::vector<double> map = map_of(2);
  map[numbers / 2 + 4] = 7;
  CHECK(holds(data.complaint(2, map), "class 7 at place 4; the classes are 0 to 1"));
  put_map(data.map(2), map);
  data.dataset.classes_of_whole = 8;
  std::vector<float> read(numbers);
  TokenLabels(data.folder / "maps", data.dataset).read(2, read.data());
  std::vector<double> wanted = map;
  wanted[4] = wanted[numbers / 2 + 4] = 0;
  CHECK(std::equal(read.begin(), read.end(), wanted.begin(), wanted.end()));
}

TEST_CASE("token labels: a map that is missing names its picture") {
  const Labelled data;
  std::filesystem::remove(data.map(1));
  std::filesystem::remove(data.map(4));
  check_refused([&] { TokenLabels(data.folder / "maps", data.dataset); }, "train/a/1.png has no map",
                "maps/a/1.safetensors is missing, and 1 of the other 5 too");
  check_refused([&] { TokenLabels(data.folder / "none", data.dataset); }, "none: no such folder");
}

TEST_CASE("token labels: malformed maps are refused by file and reason") {
  const Labelled data;
  std::vector<double> map = map_of(0);
  holds(data.complaint(0, {1, 0}, {2, 1}), "is [2, 1]; [2, T, h, w] is wanted");
  holds(data.complaint(0, std::vector<double>(54), {3, 2, 3, 3}), "[2, T, h, w] is wanted");
  holds(data.complaint(0, {}, {2, 0, 3, 3}), "[2, T, h, w] is wanted");
  holds(data.complaint(0, std::vector<double>(1 << 21), {2, 1, 1 << 10, 1 << 10}), "[2, T, h, w] is wanted");
  holds(data.complaint(3, std::vector<double>(16), {2, 2, 2, 2}), "is [2, 2, 2, 2], that of ");
  holds(data.complaint(3, map, {2, ranks, side, side}, DType::f64), "F32 or F16 is wanted");
  for (const double score : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    map = map_of(3);
    map[11] = score;
    holds(data.complaint(3, map), "a score is ");
  }
  for (const double k : {-1.0, 0.5, 2.0, 1e30, std::nan("")}) {
    map = map_of(3);
    map[numbers - 1] = k;
    holds(data.complaint(3, map), " at place 8; the classes are 0 to 1");
  }
  map = map_of(3);
  map[numbers / 2 + 9] = map[numbers / 2];
  holds(data.complaint(3, map), "class 0 twice at place 0");

  std::vector<float> to(numbers);
  const TokenLabels labels(data.folder / "maps", data.dataset);
  put(data.map(5), bytes_of(data.map(5)).substr(0, 60));
  check_refused([&] { labels.read(5, to.data()); }, data.map(5).string());
  write_safetensors(data.map(5), {{"token_label", Tensor::zeros({1})}});
  check_refused([&] { labels.read(5, to.data()); }, data.map(5).string(), "no tensor 'token_labels'");
}

TEST_CASE("token labels: the loader says where each picture of a batch lies in the whole one") {
  const Labelled data;
  const auto labels = std::make_shared<TokenLabels>(data.folder / "maps", data.dataset);
  const Pipeline pipeline =
      Pipeline::training(data.dataset, {.resized_crop = ResizedCropOptions{}, .crop_padding = 0});
  LoaderOptions options{.sampler = {.batch = 4}, .token_labels = labels, .seed = 9};
  Loader loader(data.dataset.train, pipeline, options);
  loader.start(2);
  const Batch* batch = loader.next();
  REQUIRE(batch);
  CHECK(batch->token_maps.shape() == Shape{4, 2, ranks, side, side});
  int mirrored = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const std::vector<double> map = map_of(batch->indices[static_cast<size_t>(i)]);
    CHECK(std::equal(map.begin(), map.end(), batch->token_maps.data<float>() + i * numbers));
    Random random = Random(9).split(2).split(static_cast<uint64_t>(i));
    const PixelBox box = draw_resized_crop({}, 40, 60, random);
    const double left = static_cast<double>(box.left) / 60, right = static_cast<double>(box.right) / 60,
                 top = static_cast<double>(box.top) / 40, bottom = static_cast<double>(box.bottom) / 40;
    const bool flip = random.chance(0.5);
    const std::vector<double> wanted = flip
                                           ? std::vector<double>{left - right, 0, right, 0, bottom - top, top}
                                           : std::vector<double>{right - left, 0, left, 0, bottom - top, top};
    for (int64_t k = 0; k < 6; ++k)
      CHECK(batch->token_views.data<double>()[6 * i + k] ==
            doctest::Approx(wanted[static_cast<size_t>(k)]).epsilon(1e-12));
    mirrored += flip;
  }
  CHECK((mirrored > 0 && mirrored < 4));

  options.mix.mixup = 1;
  check_refused([&] { Loader(data.dataset.train, pipeline, options); }, "token labels are not mixed");
  options.mix = {};
  check_refused([&] { Loader(data.dataset.train, Pipeline(data.dataset), options); }, "augment.resized_crop");
}

TEST_CASE("what moves pixels says where they come from") {
  constexpr int size = 48;
  Image places(size, size);  // red is 5 x column, green is 5 x row
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      places.at(y, x)[0] = static_cast<uint8_t>(5 * x);
      places.at(y, x)[1] = static_cast<uint8_t>(5 * y);
    }
  const auto check_places = [&](const Image& moved, const Affine& map) {
    int inside = 0;
    for (int y = 0; y < moved.height; ++y)
      for (int x = 0; x < moved.width; ++x) {
        const double u = map.a * (x + 0.5) + map.b * (y + 0.5) + map.c - 0.5,
                     v = map.d * (x + 0.5) + map.e * (y + 0.5) + map.f - 0.5;
        if (u < 2 || v < 2 || u > size - 3 || v > size - 3) continue;
        ++inside;
        REQUIRE(std::abs(moved.at(y, x)[0] - 5 * u) <= 3.6);  // half a pixel and rounding to bytes
        REQUIRE(std::abs(moved.at(y, x)[1] - 5 * v) <= 3.6);
      }
    CHECK(inside > moved.height * moved.width / 3);
  };
  using enum Operation;
  for (const auto& [operation, magnitude] :
       std::vector<std::pair<Operation, double>>{{shear_x, 0.3},
                                                 {shear_y, -0.2},
                                                 {translate_x, 0.25},
                                                 {translate_y, -0.3},
                                                 {Operation::rotate, -27}}) {
    const auto change = change_of(operation, magnitude, size, size);
    REQUIRE(change);
    Image moved = places;
    apply(*change, moved, Layer::picture);
    check_places(moved, change->map);
  }
  Image shifted = places;
  Random random(4), again(4);
  std::vector<Change> changes;
  PaddedCrop{7}.draw(again, size, size, changes);
  PaddedCrop{7}(shifted, random, Layer::picture);
  check_places(shifted, changes.at(0).map);

  Dataset dataset;
  dataset.image_shape = {3, 32, 32};
  dataset.normalisation = {{0, 0, 0}, {1, 1, 1}};
  const Pipeline pipeline =
      Pipeline::training(dataset, {.resized_crop = ResizedCropOptions{.min_area = 0.4}, .crop_padding = 3});
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Image image = places, seen(32, 32);
    std::vector<float> floats(3 * 32 * 32);
    pipeline(image, Random(seed), floats.data());
    for (size_t p = 0; p < 1024; ++p)
      for (size_t c = 0; c < 3; ++c)
        seen.pixels[3 * p + c] = static_cast<uint8_t>(std::lround(255 * floats[1024 * c + p]));
    Image inner(26, 26);  // without the margin of the padded crop
    for (int y = 0; y < 26; ++y) std::copy_n(seen.at(y + 3, 3), 78, inner.at(y, 0));
    check_places(inner, chained(pipeline.map_of(Random(seed), size, size), {.c = 3, .f = 3}));
  }
}

}  // namespace tessera
