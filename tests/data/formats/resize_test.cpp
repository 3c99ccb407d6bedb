#include "data/formats/resize.h"

#include <cmath>
#include <cstdio>

#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

Image as_image(const Tensor& tensor) {
  Image image(static_cast<int>(tensor.dim(0)), static_cast<int>(tensor.dim(1)));
  std::copy_n(tensor.data<uint8_t>(), image.pixels.size(), image.pixels.begin());
  return image;
}

}  // namespace

TEST_CASE("resize: the bytes of Pillow, up and down, one way and both") {
  const TensorFile file = read_safetensors(std::string(TESSERA_FIXTURES) + "/augment/resize.safetensors");
  int cases = 0;
  for (const auto& tensor : file.tensors) {
    const std::string name = tensor.first;
    int height = 0, width = 0, input = 0;
    if (std::sscanf(name.c_str(), "resize_bilinear.%dx%d.%d", &height, &width, &input) != 3) continue;
    CAPTURE(name);
    const Image from = as_image(file.at("input." + std::to_string(input)));
    CHECK(resize_bilinear(from, height, width) == as_image(tensor.second));
    ++cases;
  }
  CHECK(cases == 12);
}

TEST_CASE("fit_square: the short side to size, the centre of the long one") {
  const Image square = random_image(8, 8, 1);
  CHECK(fit_square(square, 8, "a") == square);
  Image wide(8, 13);  // only cropped, from column 2: (13 - 8) / 2 rounds half to even
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 13; ++x) wide.at(y, x)[0] = static_cast<uint8_t>(x);
  const Image cut = fit_square(wide, 8, "a");
  CHECK(cut.width == 8);
  CHECK(cut.at(3, 0)[0] == 2);
  CHECK(cut.at(3, 7)[0] == 9);
  const Image shrunk = fit_square(random_image(40, 30, 2), 16, "a");
  CHECK(shrunk.height == 16);
  CHECK(shrunk.width == 16);
}

TEST_CASE("fit_square: a crop below 1 takes the middle of a larger resized picture, by the filter") {
  const Image tall =
      random_image(40, 30, 2);  // short side to 16 / 0.7 = 22.8, long one to 22 * 40 / 30 = 29.3
  for (const bool bicubic : {false, true}) {
    const Image resized = (bicubic ? resize_bicubic : resize_bilinear)(tall, 29, 22);
    CHECK(fit_square(tall, 16, "a", {0.7, bicubic}) ==
          cut_out(resized, {6, 3, 22, 19}));  // 6.5 rounds to even
  }
  const Image square = random_image(16, 16, 3);  // of the wanted size, and still cropped
  CHECK(fit_square(square, 16, "a", {0.8, false}) ==
        cut_out(resize_bilinear(square, 20, 20), {2, 2, 18, 18}));
  CHECK(fit_square(random_image(300, 300, 4), 224, "a", {0.8784, false}) ==
        cut_out(resize_bilinear(random_image(300, 300, 4), 255, 255), {16, 16, 240, 240}));
  for (const double crop : {0.0, -1.0, 1.5, std::nan("")})
    check_refused([&] { fit_square(square, 16, "a.png", {crop, false}); }, "a.png", "at most 1 was wanted");
  check_refused([&] { fit_square(square, 16, "a.png", {1e-300, false}); }, "a.png", "more than");
}

TEST_CASE("fit_square: a picture one pixel wide does not grow past the limits") {
  check_refused([] { fit_square(Image(300000, 1), 224, "thin.png"); }, "thin.png", "more than");
}

TEST_CASE("resize: pictures without pixels are refused, and one side may stay as it is") {
  const Image some = random_image(4, 6, 1);
  for (const auto& [from, height, width] :
       {std::tuple{Image(0, 6), 2, 2}, {Image(4, 0), 2, 2}, {some, 0, 2}, {some, 2, 0}, {some, -1, 2}}) {
    const std::string why = "resize: from " + std::to_string(from.width) + " x " +
                            std::to_string(from.height) + " to " + std::to_string(width) + " x " +
                            std::to_string(height) + " pixels";
    CHECK(error_of([&] { resize_bilinear(from, height, width); }) == why);
    CHECK(error_of([&] { resize_bicubic(from, height, width); }) == why);
    CHECK(error_of([&] { resize_nearest(from, height, width); }) == why);
  }
  CHECK(resize_bicubic(some, 4, 6) == some);
  CHECK(resize_nearest(some, 8, 6).at(7, 5)[0] == some.at(3, 5)[0]);
  CHECK(fit_square_nearest(some, 4, "a").width == 4);
  CHECK(fit_square(some, 4, "a") == cut_out(some, {0, 1, 4, 5}));
  for (const auto& fit : {+[](const Image& none) { fit_square(none, 4, "none.png"); },
                          +[](const Image& none) { fit_square_nearest(none, 4, "none.png"); }})
    CHECK(error_of([&] { fit(Image()); }) == "none.png: an image of 0 x 0 pixels");
}

}  // namespace tessera
