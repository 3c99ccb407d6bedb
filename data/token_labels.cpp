#include "data/token_labels.h"

#include <algorithm>
#include <cmath>

#include "data/formats/folder.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr const char* tensor_name = "token_labels";
constexpr int64_t most_numbers = int64_t{1} << 20;  // in a map; the published ones have 3240

// Fails unless the class at one place of a map is below `known` and different from those before it there.
void check_class(const float* classes, int64_t rank, int64_t place, int64_t places, int64_t known,
                 const std::string& path) {
  const float k = classes[rank * places + place];
  check(k >= 0 && k < static_cast<float>(known) && k == std::floor(k), path, ": class ", k, " at place ",
        place, "; the classes are 0 to ", known - 1);
  for (int64_t before = 0; before < rank; ++before)
    check(classes[before * places + place] != k, path, ": class ", k, " twice at place ", place);
}

}  // namespace

TokenLabels::TokenLabels(const fs::path& folder, const Dataset& training)
    : folder_(folder),
      split_(training.train),
      classes_(training.classes()),
      known_classes_(std::max(classes_, training.classes_of_whole)) {
  check(is_folder(folder), "token labels: ", folder.string(), ": no such folder");
  int64_t missing = 0, first = 0;
  for (int64_t i = split_->size() - 1; i >= 0; --i)
    if (!is_file(path_of(i))) {
      ++missing;
      first = i;
    }
  check(missing == 0, "token labels: ", split_->source(first), " has no map: ", path_of(first).string(),
        " is missing, and ", missing - 1, " of the other ", split_->size() - 1, " too");
  const Tensor map = load(0);
  check(map.rank() == 4 && map.dim(0) == 2 && map.elements() > 0 && map.elements() <= most_numbers,
        path_of(0).string(), ": '", tensor_name, "' is ", map.shape(),
        "; [2, T, h, w] is wanted, the scores and the classes of T at each of h x w places");
  shape_ = map.shape();
}

fs::path TokenLabels::path_of(int64_t i) const { return folder_ / (split_->name(i) + ".safetensors"); }

Tensor TokenLabels::load(int64_t i) const {
  const Tensor map = read_safetensors(path_of(i)).at(tensor_name);
  check(map.dtype() == DType::f32, path_of(i).string(), ": '", tensor_name, "' is ", map.dtype(),
        "; F32 or F16 is wanted");
  return map;
}

void TokenLabels::read(int64_t i, float* to) const {
  const Tensor map = load(i);
  const std::string path = path_of(i).string();
  check(map.shape() == shape_, path, ": '", tensor_name, "' is ", map.shape(), ", that of ",
        path_of(0).string(), " ", shape_);
  const int64_t ranks = shape_[1], places = shape_[2] * shape_[3], scored = ranks * places;
  std::copy_n(map.data<float>(), map.elements(), to);
  float* classes = to + scored;
  for (int64_t at = 0; at < scored; ++at) {
    check(std::isfinite(to[at]), path, ": a score is ", to[at], ", at place ", at % places);
    check_class(map.data<float>() + scored, at / places, at % places, places, known_classes_, path);
    if (classes[at] >= static_cast<float>(classes_)) to[at] = classes[at] = 0;
  }
}

}  // namespace tessera
