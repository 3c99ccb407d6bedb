#include "data/formats/resize.h"

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

TEST_CASE("fit_square: a picture one pixel wide does not grow past the limits") {
  check_refused([] { fit_square(Image(300000, 1), 224, "thin.png"); }, "thin.png", "more than");
}

}  // namespace tessera
