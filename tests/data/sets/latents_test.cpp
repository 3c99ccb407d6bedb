#include "data/sets/latents.h"

#include <cmath>
#include <limits>
#include <map>

#include "data/check.h"
#include "data/loader.h"
#include "data/registry.h"
#include "engine/core/parallel.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

constexpr int64_t channels = 2, side = 3, numbers = channels * side * side;

// Latents that count from `first` on.
Tensor counting(int64_t count, double first = 0, const Shape& shape = {channels, side, side},
                DType dtype = DType::f32) {
  std::vector<double> values;
  for (int64_t i = 0; i < count * shape.elements(); ++i) values.push_back(first + static_cast<double>(i) / 4);
  return Tensor::from(values, shape.inserted(0, count), dtype);
}

Tensor labels_of(std::vector<int64_t> labels) {
  const auto count = std::ssize(labels);
  return Tensor::from(labels, {count});
}

void put_latents(const fs::path& path, const NamedTensors& tensors) {
  fs::create_directories(path.parent_path());
  write_safetensors(path, tensors);
}

std::vector<float> latent(const Split& split, int64_t i, uint64_t seed = 0) {
  std::vector<float> values(static_cast<size_t>(numbers));
  split.latent(i, Random(seed), values.data());
  return values;
}

// A train file of these tensors is refused with its name and this reason.
void refused(const NamedTensors& tensors, const std::string& why) {
  const TemporaryFolder folder;
  const fs::path file = folder / "train.safetensors";
  put_latents(file, tensors);
  const auto read_all = [&] {
    const Dataset data = open_dataset("latents", folder.path());
    for (int64_t i = 0; i < data.train->size(); ++i) latent(*data.train, i);
  };
  check_refused(read_all, file.string(), why);
}

}  // namespace

TEST_CASE("latents: splits, labels, and numbers times the scale") {
  const TemporaryFolder folder;
  put_latents(folder / "train" / "a.safetensors",
              {{"latents", counting(3)}, {"labels", labels_of({0, 4, 1})}});
  put_latents(
      folder / "train" / "b.safetensors",
      {{"latents", counting(2, 100, {channels, side, side}, DType::bf16)}, {"labels", labels_of({2, 2})}});
  put_latents(folder / "test.safetensors", {{"latents", counting(1, 50)}, {"labels", labels_of({5})}});
  const Dataset data = open_dataset("latents", folder.path(), {.latent_scale = 2});
  CHECK(data.image_shape == Shape{channels, side, side});
  CHECK((data.train->size() == 5 && data.validation->size() == 1 && data.classes() == 6));
  CHECK((data.class_names[5] == "5" && data.latent_scale == 2 && data.train->has_latents()));
  CHECK((data.train->label(1) == 4 && data.train->label(4) == 2 && data.validation->label(0) == 5));
  CHECK(latent(*data.train, 1)[0] == 2 * numbers / 4.0f);
  CHECK(latent(*data.train, 3)[4] == 2 * 101);
  CHECK(latent(*data.validation, 0)[0] == 100);
  CHECK(data.train->source(4) == (folder / "train/b.safetensors").string() + ": latent 1");
  Image image;
  check_refused([&] { data.train->image(0, image); }, "a.safetensors: latent 0", "no pixels to show");
  put(folder / "classes.txt", "a\nb\nc\nd\ne\nf\ng\n");
  CHECK(open_dataset("latents", folder.path()).class_names.back() == "g");
  put(folder / "classes.txt", "a\nb\n");
  check_refused([&] { open_dataset("latents", folder.path()); }, "classes.txt: names 2 classes", "is 5");
}

TEST_CASE("latents: one file, or a folder without a test split, holds a share out by the seed") {
  const TemporaryFolder folder;
  const fs::path file = folder / "train.safetensors";
  put_latents(file, {{"latents", counting(20)}, {"labels", labels_of(std::vector<int64_t>(20, 1))}});
  const auto first_numbers = [&](const fs::path& path, uint64_t seed) {
    const Dataset data = open_dataset("latents", path, {.seed = seed, .validation_fraction = 0.25});
    CHECK((data.train->size() == 15 && data.validation->size() == 5 && data.classes() == 2));
    std::map<float, int> seen;
    std::vector<float> held;
    for (int64_t i = 0; i < 15; ++i) ++seen[latent(*data.train, i)[0]];
    for (int64_t i = 0; i < 5; ++i) ++seen[held.emplace_back(latent(*data.validation, i)[0])];
    CHECK(seen.size() == 20);  // each is in one of the splits
    return held;
  };
  CHECK(first_numbers(file, 1) == first_numbers(folder.path(), 1));
  CHECK(first_numbers(file, 1) != first_numbers(file, 2));
}

TEST_CASE("latents: means and logvars are drawn anew by the stream, with these moments") {
  const TemporaryFolder folder;
  const Tensor mean = Tensor::full({2, channels, side, side}, 3, DType::f32);
  put_latents(folder / "train.safetensors",
              {{"means", mean},
               {"logvars", Tensor::full(mean.shape(), std::log(0.25), DType::f32)},
               {"labels", labels_of({0, 1})}});
  const Dataset data =
      open_dataset("latents", folder.path(), {.validation_fraction = 0.5, .latent_scale = 1});
  CHECK(latent(*data.train, 0, 1) == latent(*data.train, 0, 1));
  CHECK(latent(*data.train, 0, 1) != latent(*data.train, 0, 2));
  double sum = 0, squares = 0;
  constexpr int draws = 2000;
  for (uint64_t seed = 0; seed < draws; ++seed)
    for (const float value : latent(*data.train, 0, seed)) {
      sum += value;
      squares += (value - 3.0) * (value - 3.0);
    }
  const double count = draws * static_cast<double>(numbers);
  CHECK(std::abs(sum / count - 3) < 5 * 0.5 / std::sqrt(count));  // five standard errors
  CHECK(std::abs(squares / count - 0.25) < 5 * 0.25 * std::sqrt(2 / count));
}

TEST_CASE("latents: a loader gives them unchanged, the same for any number of threads, new draws an epoch") {
  const TemporaryFolder folder;
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 40; ++i) classes.push_back(i % 3);
  const Tensor mean = counting(40);
  put_latents(folder / "train.safetensors", {{"means", mean},
                                             {"logvars", Tensor::full(mean.shape(), 0, DType::f32)},
                                             {"labels", labels_of(classes)}});
  const Dataset data = open_dataset("latents", folder.path());
  const auto epoch = [&](int threads, int64_t number) {
    set_threads(threads);
    Loader loader(data.train, Pipeline::training(data, no_augmentation),
                  {.sampler = {.batch = 8}, .seed = 5});
    std::vector<double> seen;
    loader.start(number);
    while (const Batch* batch = loader.next()) {
      CHECK(batch->images.shape() == Shape{8, channels, side, side});
      for (const double value : batch->images.values()) seen.push_back(value);
      for (size_t i = 0; i < 8; ++i)
        CHECK(batch->labels.integers()[i] == data.train->label(batch->indices[i]));
    }
    return seen;
  };
  CHECK(epoch(1, 0) == epoch(2, 0));
  CHECK(epoch(1, 0) != epoch(1, 1));
  set_threads(0);
  const auto flipped = [&] {
    Loader(data.train, Pipeline::training(data, {.crop_padding = 0}), {.sampler = {.batch = 8}});
  };
  check_refused(flipped, "latents", "augmentation off");
}

TEST_CASE("latents: malformed files are refused with the file's name and the fault") {
  const Tensor good = counting(2), labels = labels_of({0, 1});
  const auto with = [&](const Tensor& latents, const std::string& why) {
    refused({{"latents", latents}, {"labels", labels}}, why);
  };
  refused({{"labels", labels}}, "neither a tensor 'latents' nor 'means' and 'logvars'");
  refused({{"latents", good}}, "has no tensor 'labels'");
  refused({{"means", good}, {"labels", labels}},
          "has no tensor 'logvars' beside 'means'; wanted both, or 'latents' alone");
  refused({{"means", good}, {"logvars", counting(1)}, {"labels", labels}},
          "'logvars' is [1, 2, 3, 3], 'means' [2, 2, 3, 3]");
  with(good.reshape({2, channels, side * side}), "[N, C, H, W] is wanted");
  with(good.reshape({2, 1, 2, 9}), "they are square");
  with(Tensor::zeros({0, 2, 3, 3}), "at least one latent");
  with(Tensor::zeros({2, 2, 3, 3}, DType::i64), "F32, F16 or BF16 is wanted");
  refused({{"latents", good}, {"labels", labels_of({0, 1, 2})}}, "integers [2] are wanted");
  refused({{"latents", good}, {"labels", Tensor::zeros({2}, DType::f32)}}, "integers [2]");
  refused({{"latents", good}, {"labels", labels_of({0, -1})}}, "label -1 of latent 1");
  refused({{"latents", good}, {"labels", labels_of({0, 100000})}}, "label 100000");
  for (const double wrong :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Tensor bad = counting(2);
    for (int64_t i = 0; i < 2; ++i) bad.data<float>()[i * numbers + 5] = static_cast<float>(wrong);
    with(bad, "at place 5; its numbers must be finite");
    refused({{"means", bad}, {"logvars", good}, {"labels", labels}}, "place 5");
  }
  Tensor nan = counting(2);
  for (int64_t i = 0; i < 2 * numbers; ++i) nan.data<float>()[i] = std::nanf("");
  refused({{"means", good}, {"logvars", nan}, {"labels", labels}}, "must be finite");
  refused({{"latents", counting(1)}, {"labels", labels_of({0})}}, "two are needed");
}

TEST_CASE("latents: folders that do not go together are refused") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& why, const DatasetOptions& options = {}) {
    check_refused([&] { open_dataset("latents", folder.path(), options); }, why);
  };
  said("holds neither train.safetensors nor a folder train");
  fs::create_directories(folder / "train");
  said("holds no file *.safetensors");
  put_latents(folder / "train/0.safetensors", {{"latents", counting(2)}, {"labels", labels_of({0, 1})}});
  put_latents(folder / "val.safetensors",
              {{"latents", counting(2, 0, {4, 2, 2})}, {"labels", labels_of({0, 1})}});
  said("val.safetensors: holds latents of [4, 2, 2]");
  put_latents(folder / "train/1.safetensors",
              {{"latents", counting(2, 0, {4, 2, 2})}, {"labels", labels_of({0, 1})}});
  said("1.safetensors: holds latents of [4, 2, 2]");
  said("latents of", {.image_size = 64});
  check_refused([&] { open_dataset("latents", folder / "none"); }, "is neither a folder nor a file");
  put(folder / "train/1.safetensors", "no tensors");
  said("1.safetensors");
}

TEST_CASE("latents: the check of a data set finds copies, leaks and numbers that are not finite") {
  const TemporaryFolder folder;
  Tensor some = counting(4);
  std::copy_n(some.data<float>(), numbers, some.data<float>() + 2 * numbers);  // 2 is a copy of 0
  some.data<float>()[numbers] = std::nanf("");
  put_latents(folder / "train.safetensors", {{"latents", some}, {"labels", labels_of({0, 1, 0, 1})}});
  put_latents(folder / "val.safetensors", {{"latents", counting(1)}, {"labels", labels_of({0})}});
  const Dataset data = open_dataset("latents", folder.path());
  std::map<std::string, int64_t> found;
  for (const Finding& finding : check_dataset(data, nullptr).findings) found[finding.kind] = finding.count;
  CHECK(found["unreadable"] == 1);
  CHECK(found["duplicates"] == 1);
  CHECK(found["leakage"] == 1);
}

TEST_CASE("latents: a folder is told from one of pictures by its files") {
  const TemporaryFolder folder;
  CHECK_FALSE(looks_like_latents(folder.path()));
  fs::create_directories(folder / "train/cat");
  CHECK_FALSE(looks_like_latents(folder.path()));
  put(folder / "train/notes.txt", "no tensors");
  put(folder / "train/a.safetensors", "not read yet");
  CHECK(looks_like_latents(folder.path()));
  fs::remove_all(folder / "train");
  put(folder / "train.safetensors", "not read yet");
  CHECK(looks_like_latents(folder.path()));
}

TEST_CASE("latents: several files of a validation split, the size asked for, and shares that are none") {
  const TemporaryFolder folder;
  const NamedTensors two{{"latents", counting(2)}, {"labels", labels_of({0, 1})}};
  put_latents(folder / "train.safetensors", two);
  const auto open = [&](const DatasetOptions& options) { return open_latents(folder.path(), options); };
  for (const double fraction : {0.0, 1.0})
    check_refused([&] { open({.validation_fraction = fraction}); }, "latents: a validation fraction of ");
  CHECK(open({.image_size = side}).image_shape == Shape{channels, side, side});
  check_refused([&] { open({.image_size = side + 1}); }, "holds latents of 3 x 3, data.image_size is 4");
  put_latents(folder / "valid/a.safetensors", two);
  CHECK(open({}).notes.at(0) == "validation latents from " + (folder / "valid/a.safetensors").string());
  put_latents(folder / "valid/b.safetensors", two);
  CHECK(open({}).notes.at(0).ends_with("a.safetensors and 1 more"));
  CHECK(open({}).validation->size() == 4);
  put_latents(folder / "train.safetensors",
              {{"latents", Tensor::zeros({1, 1, 4097, 4097})}, {"labels", labels_of({0})}});
  check_refused([&] { open({}); }, "holds latents of 1 x 4097 x 4097; they are square");
}

}  // namespace tessera
