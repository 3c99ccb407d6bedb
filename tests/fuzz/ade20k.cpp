#include "data/sets/ade20k.h"

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace tessera {

namespace {

const std::string names = "objectInfo150.txt", mask = "annotations/training/a.png",
                  picture = "images/training/a.jpg";

std::string good_picture() {
  const std::vector<uint8_t> bytes = encode_png(Image(16, 16));
  return {bytes.begin(), bytes.end()};
}

void plant(const fuzz::Folder& folder) {
  folder.put(picture, good_picture());
  folder.put("images/validation/b.jpg", good_picture());
  folder.put("annotations/training/a.png", "");
  folder.put("annotations/validation/b.png", "");
}

}  // namespace

}  // namespace tessera

// The first byte selects what the other bytes are: the classes' names, a mask, or a picture.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const fuzz::Folder folder;
  static const bool planted = (plant(folder), true);
  if (size == 0 || !planted) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int kind = data[0] % 3;
  folder.put(kind == 0 ? names : kind == 1 ? mask : picture, bytes);
  fuzz::may_refuse(folder.path(), [&] {
    const Dataset dataset = open_ade20k(folder.path(), {.image_size = 16});
    Image image;
    dataset.train->image(0, image);
    dataset.train->mask(0, image);
  });
  std::filesystem::remove(folder.path() / names);
  folder.put(picture, good_picture());
  return 0;
}
