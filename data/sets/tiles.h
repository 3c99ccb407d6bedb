#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry tiles_entry();

/// Squares cut out of a few large pictures: textures, materials, aerial photographs. Each picture of `dir` is
/// a class of its file's name, or each folder of pictures one of its name; classes are numbered in byte
/// order. The right quarter of every picture (at least one tile) is for validation, the rest for training, so
/// that no pixel is in both. Training tiles lie a quarter of their side apart, validation tiles half of it.
/// Tiles are image_size x image_size pixels as stored, 64 by default. Fails for fewer than two classes, a
/// picture in which not two tiles lie side by side, and a file that cannot be read as a picture.
Dataset open_tiles(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
