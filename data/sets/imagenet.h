#pragma once

#include "data/dataset.h"

namespace tessera {

// ImageNet (ILSVRC 2012) as its archives unpack: train/WNID/WNID_NUMBER.JPEG, and val/WNID/*.JPEG or val
// flat, with the classes in LOC_val_solution.csv beside it (a line a picture:
// "ILSVRC2012_val_00000001,n01751748 ..."). A class is named by LOC_synset_mapping.txt, synset_words.txt or
// words.txt where one is there, else by its WNID; classes are numbered in the order of the sorted WNIDs.
//
// `first_classes` takes the first so many (100: SP-ViT's ablation, n01440764 to n01855672); 0 is all. Fails
// for a folder that is no WNID, a training picture of another class's name, a class without pictures, a flat
// val without labels, and a first 100 that are not ImageNet's.
Dataset open_imagenet(const std::filesystem::path& dir, const DatasetOptions& options, int64_t first_classes);

}  // namespace tessera
