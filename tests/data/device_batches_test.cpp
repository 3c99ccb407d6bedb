// Compares the batches of a GPU, or of the emulator in its place, with the CPU's bit for bit.
#include "data/device_batches.h"

#include "data/augment/autoaugment.h"
#include "engine/core/parallel.h"
#include "tests/data/device_batches.h"

namespace tessera {

TEST_CASE("cuda: whole regimes, over seeds, sizes, and types") {
  if (!cuda_here()) return;
  const MixOptions mixes[] = {{.mixup = 0.8, .cutmix = 1, .probability = 0.7}, {}, {.cutmix = 1}};
  using Fill = ErasingOptions::Fill;
  const ErasingOptions erasings[] = {{.probability = 0.5},
                                     {.probability = 0.6, .log_ratio = true, .fill = Fill::noise},
                                     {.probability = 1, .max_area = 0.2, .fill = Fill::zero}};
  for (uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    const auto& [height, width] = sizes[seed % 3];
    const Dataset dataset = pictures(37, height, width);
    AugmentOptions regime{.crop_padding = static_cast<int>(seed % 3) * 2,
                          .autoaugment = policy_names()[seed % 3],
                          .erasing = erasings[seed / 2]};
    if (seed % 2 == 1) regime.randaugment.emplace(RandAugmentOptions{.operations = 3, .probability = 0.9});
    LoaderOptions options{.sampler = {.batch = 12}, .mix = mixes[seed % 3], .seed = seed};
    expect_same(dataset, Pipeline::training(dataset, regime), options);
  }
}

TEST_CASE("cuda: short last batches, repeated pictures, one slot, one thread") {
  if (!cuda_here()) return;
  const Dataset dataset = pictures(23, 12, 12);
  const Pipeline pipeline = Pipeline::training(dataset, {.autoaugment = "svhn"});
  LoaderOptions options{.sampler = {.batch = 8, .drop_last = false}, .mix = {.mixup = 1}, .seed = 3};
  expect_same(dataset, pipeline, options);
  options.sampler = {.batch = 6, .passes = 2, .repetitions = 3, .multiple = 5};
  expect_same(dataset, pipeline, options);
  options.depth = 1;
  expect_same(dataset, pipeline, options);
  set_threads(1);
  expect_same(dataset, pipeline, options);
  set_threads(0);
  expect_same(dataset, Pipeline(dataset), {.sampler = {.batch = 23, .shuffle = false}});
}

TEST_CASE("cuda: leaving an epoch half way, and places in the middle, lose nothing") {
  if (!cuda_here()) return;
  const Dataset dataset = pictures(40, 16, 16);
  const Pipeline pipeline = Pipeline::training(dataset, {.autoaugment = "cifar10"});
  const LoaderOptions options{.sampler = {.batch = 8}, .mix = {.cutmix = 1}, .seed = 9};
  Loader host(dataset.train, pipeline, options), made(dataset.train, pipeline, delivered(options));
  const void* place = nullptr;
  for (int64_t step = 0; step < 5; ++step) {
    made.start(7);
    const Batch* batch = made.next();
    CHECK((place == nullptr || batch->images.raw() == place));  // a recorded graph reads this address
    place = batch->images.raw();
    expect_same(host, made, DType::f32, 2, step);
  }
}

TEST_CASE("cuda: batches that are read only when others were made after them") {
  if (!cuda_here()) return;
  // The emulator runs what waits in another order at every second wait, so rounds have odd numbers of reads.
  // Each has pictures of its own, because memory that is used again would still hold the last round's.
  for (const bool resident : {true, false})
    for (const int64_t batches : {1, 1, 2, 9, 11, 1, 9}) {
      static uint64_t seed = 0;
      const Dataset dataset = pictures(48, 16, 16, ++seed);
      const Pipeline pipeline = Pipeline::training(dataset, {.autoaugment = "cifar10"});
      const LoaderOptions options{.sampler = {.batch = 4}, .mix = {.cutmix = 1}, .seed = seed};
      Loader host(dataset.train, pipeline, options),
          made(dataset.train, pipeline, delivered(options, DType::f32, resident));
      host.start(1);
      made.start(1);
      std::vector<Tensor> wanted, images;
      for (int64_t step = 0; step < batches; ++step) {
        wanted.push_back(host.next()->images.clone());
        images.push_back(made.next()->images.clone());  // in the stream's order; the host does not wait
      }
      for (size_t step = 0; step < images.size(); ++step) {
        CAPTURE(resident);
        CAPTURE(step);
        CHECK(same_bits(images[step].to(Device::cpu), wanted[step]));
      }
    }
}

TEST_CASE("cuda: pictures too large for a block come from the host, cut-outs too") {
  if (!cuda_here()) return;
  const Dataset large = pictures(3, 200, 210);
  const Pipeline pipeline = Pipeline::training(large, {.autoaugment = "imagenet"});
  const LoaderOptions options{.sampler = {.batch = 3}, .seed = 4};
  Loader host(large.train, pipeline, options), made(large.train, pipeline, delivered(options));
  CHECK_FALSE(made.resident());
  expect_same(host, made, DType::f32, 0, 0);

  const Dataset small = pictures(9, 24, 24);
  const Pipeline cut = Pipeline::training(small, {.resized_crop = ResizedCropOptions{}});
  Loader cut_host(small.train, cut, options), cut_made(small.train, cut, delivered(options));
  CHECK_FALSE(cut_made.resident());
  expect_same(cut_host, cut_made, DType::f32, 0, 0);
}

TEST_CASE("cuda: a picture that fails is named, kept or streamed") {
  if (!cuda_here()) return;
  const TemporaryFolder folder;
  std::vector<FileSplit::Item> items;
  for (int i = 0; i < 6; ++i) {
    items.push_back({folder / (std::to_string(i) + ".png"), 0});
    put_png(items.back().path, random_image(8, 8, static_cast<uint64_t>(i)));
  }
  std::filesystem::resize_file(items[4].path, 60);
  Dataset dataset;
  dataset.image_shape = {3, 8, 8};
  dataset.train = std::make_shared<FileSplit>(items, 8, 1 << 20);
  const LoaderOptions options{.sampler = {.batch = 2, .shuffle = false}};
  check_refused([&] { Loader(dataset.train, Pipeline(dataset), delivered(options)); }, "4.png");
  Loader streamed(dataset.train, Pipeline(dataset), delivered(options, DType::f32, false));
  streamed.start(0);
  CHECK(streamed.next());
  CHECK(streamed.next());
  check_refused([&] { streamed.next(); }, "4.png");
  CHECK_FALSE(streamed.next());
}

TEST_CASE("device batches: what they cannot be is refused") {
  const Dataset dataset = pictures(4, 8, 8);
  const LoaderOptions options = delivered({.sampler = {.batch = 2}}, DType::f64);
  const auto make = [&] { Loader(dataset.train, Pipeline(dataset), options); };
  if (cuda_here())
    check_refused(make, "f64", "bf16");
  else
    check_refused(make, "--device cpu");
}

}  // namespace tessera
