// Compares the batches of a GPU, or of the emulator in its place, with the CPU's bit for bit.
#include "data/device_batches.h"

#include <cstring>

#include "data/augment/autoaugment.h"
#include "data/augment/randaugment.h"
#include "data/loader.h"
#include "engine/core/parallel.h"
#include "tests/cuda.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

constexpr int64_t classes = 5;

// Random images, among them some of one colour, of few values, and of a gradient.
std::vector<uint8_t> pixels_of(int64_t pictures, int height, int width) {
  const int64_t bytes = int64_t{3} * height * width;
  std::vector<uint8_t> pixels = random_bytes(pictures * bytes, static_cast<uint64_t>(height * width));
  for (int64_t i = 0; i < pictures; ++i)
    for (int64_t p = 0; p < bytes; ++p) {
      uint8_t& v = pixels[static_cast<size_t>(i * bytes + p)];
      if (i % 5 == 1) v = static_cast<uint8_t>(40 * i + p % 3);
      if (i % 5 == 2) v = static_cast<uint8_t>(v % 7 + 100);
      if (i % 5 == 3) v = static_cast<uint8_t>(p * 255 / bytes);
    }
  return pixels;
}

Dataset pictures(int64_t count, int height, int width) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(static_cast<int32_t>(i * 7 % classes));
  Dataset dataset;
  dataset.image_shape = {3, height, width};
  dataset.class_names.resize(classes);
  dataset.train =
      std::make_shared<StoredSplit>(height, width, 3, pixels_of(count, height, width), labels, "test");
  return dataset;
}

LoaderOptions delivered(LoaderOptions options, DType dtype = DType::f32, bool resident = true) {
  options.delivery = {.device = Device::cuda, .dtype = dtype, .resident = resident, .classes = classes};
  return options;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// lam at the own label, 1 - lam at the other. [B, K]
Tensor shares_of(const Batch& batch) {
  const Tensor shares = Tensor::zeros({batch.labels.dim(0), classes});
  const auto add = [&](const Tensor& labels, double share) {
    for (int64_t i = 0; i < labels.dim(0); ++i)
      shares.data<float>()[i * classes + labels.data<int64_t>()[i]] += static_cast<float>(share);
  };
  const bool mixed = batch.other_labels.defined();
  add(batch.labels, mixed ? batch.lam : 1);
  if (mixed) add(batch.other_labels, 1 - batch.lam);
  return shares;
}

void expect_same(const Batch& host, const Batch& made, DType dtype) {
  CHECK(same_bits(made.images.to(Device::cpu), host.images.to(dtype)));
  CHECK(made.labels.integers() == host.labels.integers());
  CHECK(made.host_labels.integers() == host.labels.integers());
  REQUIRE(made.other_labels.defined() == host.other_labels.defined());
  if (host.other_labels.defined()) CHECK(made.other_labels.integers() == host.other_labels.integers());
  CHECK(made.lam == host.lam);
  CHECK(made.indices == host.indices);
  CHECK(same_bits(made.shares.to(Device::cpu), shares_of(host).to(dtype)));
}

// Compares both loaders from a batch of an epoch on.
void expect_same(Loader& host, Loader& made, DType dtype, int64_t epoch, int64_t step) {
  host.start(epoch, step);
  made.start(epoch, step);
  for (; const Batch* wanted = host.next(); ++step) {
    CAPTURE(epoch);
    CAPTURE(step);
    const Batch* batch = made.next();
    REQUIRE(batch);
    expect_same(*wanted, *batch, dtype);
  }
  CHECK(made.next() == nullptr);
}

void expect_same(const Dataset& dataset, const Pipeline& pipeline, const LoaderOptions& options) {
  for (const bool resident : {true, false})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(resident);
      CAPTURE(dtype);
      Loader host(dataset.train, pipeline, options),
          made(dataset.train, pipeline, delivered(options, dtype, resident));
      CHECK(made.resident() == resident);
      for (int64_t epoch = 0; epoch < 2; ++epoch) expect_same(host, made, dtype, epoch, 0);
      if (host.batches() > 1) expect_same(host, made, dtype, 3, host.batches() / 2);
    }
}

// An operation that appends given changes without drawing.
struct Always {
  std::vector<Change> made;
  int most_changes() const { return static_cast<int>(made.size()); }
  void draw(Random&, int, int, std::vector<Change>& to) const {
    to.insert(to.end(), made.begin(), made.end());
  }
  void operator()(Image& image, Random& random, Layer layer) const {
    draw_and_apply(*this, image, random, layer);
  }
};

// Makes one batch of all images on the device, from bytes that are kept there.
void expect_changed_alike(const Dataset& dataset, const std::vector<Change>& changes) {
  Pipeline pipeline(dataset);
  pipeline.then_drawn(Always{changes});
  const LoaderOptions options{.sampler = {.batch = dataset.train->size(), .shuffle = false}};
  Loader host(dataset.train, pipeline, options), made(dataset.train, pipeline, delivered(options));
  REQUIRE(made.resident());
  expect_same(host, made, DType::f32, 0, 0);
}

const std::pair<int, int> sizes[] = {{32, 32}, {33, 31}, {5, 7}, {1, 1}, {2, 9}, {64, 64}};

std::vector<double> magnitudes_of(Operation operation) {
  std::vector<double> all{0, 1, -1, 0.5};
  for (int index = 0; index < 10; index += 3)
    for (const int sign : {1, -1}) all.push_back(policy_magnitude(operation, std::min(index, 9), sign));
  for (const double magnitude : {0.3, 4.7, 10.0})
    for (const int sign : {1, -1})
      if (operation != Operation::solarize_add || sign > 0)
        all.push_back(randaugment_magnitude(operation, magnitude, sign));
  if (operation == Operation::rotate) all.insert(all.end(), {90, 180, 270, 360, -17.3});
  return all;
}

}  // namespace

TEST_CASE("cuda: every operation, at all kinds of sizes") {
  if (!cuda_here()) return;
  for (const auto& size : sizes) {
    const int height = size.first, width = size.second;
    const Dataset dataset = pictures(6, height, width);
    for (int i = 0; i <= static_cast<int>(Operation::invert); ++i) {
      const auto operation = static_cast<Operation>(i);
      for (const double magnitude : magnitudes_of(operation))
        for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic}) {
          if (!moves(operation) && filter != Filter::nearest) continue;
          CAPTURE(height);
          CAPTURE(i);
          CAPTURE(magnitude);
          CAPTURE(static_cast<int>(filter));
          const Drawing drawing{.shear = filter, .others = filter, .fill = {1, 200, 77}};
          if (const auto change = change_of(operation, magnitude, height, width, drawing))
            expect_changed_alike(dataset, {*change});
        }
    }
  }
}

TEST_CASE("cuda: flips, shifts of all directions, and many changes after one another") {
  if (!cuda_here()) return;
  const Dataset dataset = pictures(6, 11, 14);
  std::vector<Change> all;
  for (const int down : {0, 1, -3, 11, -20})
    for (const int right : {0, 2, -5, 14, 30}) {
      const Change shift{.kind = Change::Kind::shift, .down = down, .right = right};
      expect_changed_alike(dataset, {shift});
      expect_changed_alike(dataset, {{.kind = Change::Kind::flip}, shift});
      if (std::abs(down) + std::abs(right) < 5) all.push_back(shift);
    }
  for (int i = 0; i <= static_cast<int>(Operation::invert); ++i)
    all.push_back(change_of(static_cast<Operation>(i), 0.3, 11, 14).value());
  expect_changed_alike(dataset, all);
}

TEST_CASE("cuda: all 75 sub-policies, both signs") {
  if (!cuda_here()) return;
  for (const int size : {32, 19}) {
    const Dataset dataset = pictures(6, size, size);
    for (const std::string& name : policy_names())
      for (const SubPolicy& chosen : policy(name))
        for (const int sign : {1, -1}) {
          CAPTURE(name);
          std::vector<Change> changes;
          for (const PolicyStep& step : chosen)
            if (const auto change =
                    change_of(step.operation, policy_magnitude(step.operation, step.index, sign), size, size))
              changes.push_back(*change);
          expect_changed_alike(dataset, changes);
        }
  }
}

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
