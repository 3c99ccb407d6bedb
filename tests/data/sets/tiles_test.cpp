#include "data/sets/tiles.h"

#include "data/registry.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

// A picture whose pixels tell their place: (x, y, blue).
void write_places(const std::filesystem::path& path, int width, int height, uint8_t blue) {
  Image image(height, width);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      uint8_t* pixel = image.at(y, x);
      pixel[0] = static_cast<uint8_t>(x), pixel[1] = static_cast<uint8_t>(y), pixel[2] = blue;
    }
  write_png(path, image);
}

std::string refusal(const std::filesystem::path& dir, int size = 16) {
  try {
    open_tiles(dir, {.image_size = size});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tiles: cut as stored, training tiles left of every validation tile") {
  const TemporaryFolder folder;
  write_places(folder / "b.png", 100, 40, 1);
  std::filesystem::create_directory(folder / "a");
  write_places(folder / "a/one.png", 40, 20, 2);
  write_places(folder / "a/two.png", 32, 16, 3);
  put(folder / "notes.txt", "no picture");
  const Dataset tiles = open_dataset("tiles", folder.path(), {.image_size = 16});
  CHECK(tiles.class_names == std::vector<std::string>{"a", "b"});
  CHECK(tiles.image_shape == Shape{3, 16, 16});
  // a/one: columns 0, 4, 8 of 24, rows 0, 4; a/two: one; b: columns 0, 4 .. 56 of 75, rows 0, 4 .. 24.
  CHECK(class_counts(*tiles.train, 2) == std::vector<int64_t>{3 * 2 + 1, 15 * 7});
  CHECK(class_counts(*tiles.validation, 2) == std::vector<int64_t>{1 + 1, 2 * 4});
  int rightmost = 0, leftmost = 255;
  for (const auto& [split, train] : {std::pair{tiles.train, true}, {tiles.validation, false}})
    for (int64_t i = 0; i < split->size(); ++i) {
      const Image tile = picture(*split, i);
      CHECK((tile.height == 16 && tile.width == 16));
      for (int y = 0; y < 16; ++y)
        for (int x = 0; x < 16; ++x) {
          CHECK(tile.at(y, x)[0] == tile.at(0, 0)[0] + x);
          CHECK(tile.at(y, x)[1] == tile.at(0, 0)[1] + y);
        }
      if (tile.at(0, 0)[2] != 1) continue;
      if (train)
        rightmost = std::max<int>(rightmost, tile.at(0, 15)[0]);
      else
        leftmost = std::min<int>(leftmost, tile.at(0, 0)[0]);
    }
  CHECK(rightmost < leftmost);
}

TEST_CASE("tiles: what cannot be cut is refused") {
  const TemporaryFolder folder;
  CHECK(refusal(folder / "none").find("is not a folder") != std::string::npos);
  write_places(folder / "a.png", 64, 64, 1);
  CHECK(refusal(folder.path()).find("holds 1 classes, at least 2") != std::string::npos);
  write_places(folder / "b.png", 31, 64, 1);
  CHECK(refusal(folder.path()).find("b.png is 31 x 64 pixels; two tiles of 16 side by side") !=
        std::string::npos);
  CHECK(refusal(folder.path(), 15).empty());
  write_places(folder / "a.jpg", 64, 64, 1);  // PNG's bytes under another ending
  CHECK(refusal(folder.path()).find("are named a; each is a class") != std::string::npos);
  std::filesystem::remove(folder / "a.jpg");
  std::filesystem::create_directory(folder / "c");
  CHECK(refusal(folder.path()).find("c holds no JPEG, PNG or BMP file") != std::string::npos);
}

TEST_CASE("tiles: the photographs of the demo") {
  const Dataset tiles = open_dataset("tiles", TESSERA_SOURCE "/data/closeups", {});
  CHECK(tiles.classes() == 8);
  CHECK(tiles.image_shape == Shape{3, 64, 64});
  for (const int64_t count : class_counts(*tiles.train, 8)) CHECK(count > 200);
  for (const int64_t count : class_counts(*tiles.validation, 8)) CHECK(count > 5);
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(TESSERA_SOURCE "/data/closeups"))
    bytes += static_cast<int64_t>(file.file_size());
  CHECK(bytes < 1'000'000);
}

TEST_CASE("tiles: pictures have one of four endings, in any case, and a least height") {
  const TemporaryFolder folder;
  for (const char* name : {"a.jpg", "b.JPEG", "c.png", "d.Bmp", "e.gif"})
    write_places(folder / name, 64, 64, 1);
  CHECK(open_tiles(folder.path(), {.image_size = 16}).class_names ==
        std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(open_tiles(folder.path(), {.image_size = 1}).image_shape == Shape{3, 1, 1});
  write_places(folder / "c.png", 64, 15, 1);
  CHECK(refusal(folder.path()).find("c.png is 64 x 15 pixels; two tiles of 16 side by side") !=
        std::string::npos);
  CHECK(refusal("") == "tiles: no data folder was given");
}

}  // namespace tessera
