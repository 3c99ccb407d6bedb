#include "data/loader.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "data/sets/shapes.h"
#include "engine/core/parallel.h"
#include "tests/data/files.h"

namespace tessera {

namespace {

constexpr int64_t count = 70;

const Dataset& shapes() {
  static const Dataset dataset = [] {
    ShapesOptions options;
    options.train = count;
    options.validation = 10;
    options.image_size = 16;
    return make_shapes(options);
  }();
  return dataset;
}

LoaderOptions shuffled(int depth = 3) {
  return {.sampler = {.batch = 16, .passes = 2}, .seed = 5, .depth = depth};
}

// The batches of an epoch from batch `step` on, concatenated.
struct Delivered {
  std::vector<float> pixels;
  std::vector<int64_t> labels, indices;
  std::vector<double> mixes;  // lam of each batch
  bool operator==(const Delivered&) const = default;
};

Delivered take(Loader& loader, int64_t epoch, int64_t step = 0) {
  Delivered all;
  loader.start(epoch, step);
  while (const Batch* batch = loader.next()) {
    const float* pixels = batch->images.data<float>();
    all.pixels.insert(all.pixels.end(), pixels, pixels + batch->images.elements());
    for (const int64_t label : batch->labels.integers()) all.labels.push_back(label);
    all.indices.insert(all.indices.end(), batch->indices.begin(), batch->indices.end());
    all.mixes.push_back(batch->lam);
  }
  return all;
}

Delivered take(const LoaderOptions& options, int64_t epoch, int64_t step = 0) {
  Loader loader(shapes().train, Pipeline::training(shapes(), {}), options);
  return take(loader, epoch, step);
}

// A split with slow images, some of which fail as `broken` says.
class FailingSplit : public StoredSplit {
 public:
  explicit FailingSplit(std::vector<int64_t> broken)
      : StoredSplit(16, 16, 1, std::vector<uint8_t>(64 * 256), std::vector<int32_t>(64), "test"),
        broken_(std::move(broken)) {}

  void image(int64_t i, Image& out) const override {
    check(std::find(broken_.begin(), broken_.end(), i) == broken_.end(), "folder/", i,
          ".jpg: cannot be decoded");
    StoredSplit::image(i, out);
  }

 private:
  std::vector<int64_t> broken_;
};

// A split that counts how often a picture of it is read.
class CountingSplit : public FailingSplit {
 public:
  CountingSplit() : FailingSplit({}) {}
  void image(int64_t i, Image& out) const override {
    ++reads;
    FailingSplit::image(i, out);
  }
  mutable std::atomic<int> reads = 0;
};

}  // namespace

TEST_CASE("loader: an epoch that goes on reads no picture of the batches before") {
  const auto split = std::make_shared<CountingSplit>();
  Loader loader(split, Pipeline(shapes()), {.sampler = {.batch = 16}, .depth = 2});
  take(loader, 0, 1);
  CHECK(split->reads == 48);
}

TEST_CASE("loader: the same bits with one thread and with two, whatever the depth") {
  const Delivered two = take(shuffled(), 3);
  CHECK(two.indices.size() == 128);
  set_threads(1);
  const Delivered one = take(shuffled(), 3);
  set_threads(0);
  CHECK(one == two);
  CHECK(take(shuffled(1), 3) == two);
  CHECK(take(shuffled(20), 3) == two);
}

TEST_CASE("loader: the sampler's order, the split's labels, the pipeline's pixels") {
  const Delivered all = take(shuffled(), 1);
  const LoaderOptions options = shuffled();
  CHECK(all.indices == Sampler(count, options.sampler, options.seed).epoch(1));
  const Pipeline pipeline = Pipeline::training(shapes(), {});
  for (size_t i = 0; i < all.indices.size(); ++i) {
    CHECK(all.labels[i] == shapes().train->label(all.indices[i]));
    Image image = picture(*shapes().train, all.indices[i]);
    std::vector<float> wanted(3 * 16 * 16);
    pipeline(image, Random(options.seed).split(1).split(i), wanted.data());
    CHECK(std::equal(wanted.begin(), wanted.end(),
                     all.pixels.begin() + static_cast<int64_t>(i * wanted.size())));
  }
}

TEST_CASE("loader: from the middle of an epoch on, as if it had never stopped") {
  const Delivered whole = take(shuffled(), 2);
  Loader loader(shapes().train, Pipeline::training(shapes(), {}), shuffled());
  for (int64_t step = 0; step <= loader.batches(); ++step) {
    const Delivered rest = take(loader, 2, step);
    CHECK(std::equal(rest.indices.begin(), rest.indices.end(), whole.indices.begin() + 16 * step,
                     whole.indices.end()));
    CHECK(std::equal(rest.pixels.begin(), rest.pixels.end(), whole.pixels.begin() + 16 * step * 768,
                     whole.pixels.end()));
  }
  loader.start(0);  // an epoch can be left half way
  loader.next();
  CHECK(take(loader, 2) == whole);
  CHECK(take(loader, 3) != whole);
}

TEST_CASE("loader: evaluation drops nothing") {
  Loader loader(shapes().train, Pipeline(shapes()),
                {.sampler = {.batch = 16, .shuffle = false, .drop_last = false}});
  const Delivered all = take(loader, 0);
  REQUIRE(all.indices.size() == count);
  for (int64_t i = 0; i < count; ++i) CHECK(all.indices[static_cast<size_t>(i)] == i);
  loader.start(0, loader.batches() - 1);
  const Batch* last = loader.next();
  REQUIRE(last != nullptr);
  CHECK(last->images.shape() == Shape{6, 3, 16, 16});
  CHECK(last->labels.shape() == Shape{6});
  CHECK(loader.next() == nullptr);
  CHECK(loader.next() == nullptr);
}

TEST_CASE("loader: memory is used again, but a tensor that is still held keeps its numbers") {
  Loader loader(shapes().train, Pipeline::training(shapes(), {}), shuffled(2));
  take(loader, 0);
  const uint64_t before = memory_stats(Device::cpu).system_allocations;
  take(loader, 1);
  CHECK(memory_stats(Device::cpu).system_allocations == before);
  loader.start(0);
  const Tensor held = loader.next()->images;
  const std::vector<double> numbers = held.values();
  while (loader.next()) {
  }
  CHECK(held.values() == numbers);
}

TEST_CASE("loader: a picture that fails is named by next(), the first of its batch, and the rest goes on") {
  const Dataset& like = shapes();
  for (const int thread_count : {1, 0}) {
    set_threads(thread_count);
    Loader loader(std::make_shared<FailingSplit>(std::vector<int64_t>{45, 37}), Pipeline(like),
                  {.sampler = {.batch = 16, .shuffle = false}});
    loader.start(0);
    CHECK(loader.next() != nullptr);
    CHECK(loader.next() != nullptr);
    check_refused([&] { loader.next(); }, "folder/37.jpg");
    CHECK(loader.next() != nullptr);
    CHECK(loader.next() == nullptr);
    loader.start(0);  // a loader with failed batches can be destroyed
  }
  set_threads(0);
}

TEST_CASE("loader: works beside a step that uses all threads") {
  const Delivered alone = take(shuffled(), 4);
  Loader loader(shapes().train, Pipeline::training(shapes(), {}), shuffled());
  loader.start(4);
  std::vector<int64_t> indices;
  std::vector<double> sink(1000);
  while (const Batch* batch = loader.next()) {
    indices.insert(indices.end(), batch->indices.begin(), batch->indices.end());
    parallel_for(std::ssize(sink), 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int k = 0; k < 100; ++k) sink[static_cast<size_t>(i)] += static_cast<double>(k * i);
    });
  }
  CHECK(indices == alone.indices);
  CHECK(loader.wait_seconds() > 0);
}

TEST_CASE("loader: places and depths that do not exist") {
  Loader loader(shapes().train, Pipeline(shapes()), shuffled());
  CHECK(loader.next() == nullptr);  // the loader is not started
  check_refused([&] { loader.start(0, loader.batches() + 1); }, "batch 9", "0 to 7");
  check_refused([&] { loader.start(-1); }, "epoch -1");
  check_refused([] { Loader(shapes().train, Pipeline(shapes()), shuffled(0)); }, "depth of 0");
}

TEST_CASE("loader: the whole regime has the same bits on any threads, and from any step on") {
  AugmentOptions regime{.autoaugment = "cifar10", .erasing = {.probability = 0.5}};
  regime.mix = {.mixup = 1, .cutmix = 1, .probability = 0.7};
  LoaderOptions options = shuffled();
  options.mix = regime.mix;
  const auto epoch = [&](int64_t step) {
    Loader loader(shapes().train, Pipeline::training(shapes(), regime), options);
    return take(loader, 2, step);
  };
  const Delivered whole = epoch(0);
  CHECK(epoch(0) == whole);
  set_threads(1);
  CHECK(epoch(0) == whole);
  set_threads(0);
  constexpr int64_t step = 5, floats = 3 * 16 * 16;
  const Delivered rest = epoch(step);
  CHECK(std::equal(rest.pixels.begin(), rest.pixels.end(), whole.pixels.begin() + step * 16 * floats));
  CHECK(std::equal(rest.mixes.begin(), rest.mixes.end(), whole.mixes.begin() + step));
  CHECK(std::count(whole.mixes.begin(), whole.mixes.end(), 1.0) < std::ssize(whole.mixes));
}

TEST_CASE("loader: a mixed batch is the plain one mixed, its labels and the partners' beside") {
  LoaderOptions options = shuffled();
  Loader plain(shapes().train, Pipeline::training(shapes(), {}), options);
  options.mix = {.mixup = 1, .cutmix = 1};
  Loader mixing(shapes().train, Pipeline::training(shapes(), {}), options);
  plain.start(1);
  mixing.start(1);
  int cuts = 0, steps = 0;
  for (; const Batch* batch = mixing.next(); ++steps) {
    const Batch* unmixed = plain.next();
    REQUIRE(unmixed);
    CHECK_FALSE(unmixed->other_labels.defined());
    CHECK(batch->labels.integers() == unmixed->labels.integers());
    Random random = Random(options.seed).split(1).split((uint64_t{1} << 63) + static_cast<uint64_t>(steps));
    const Mix mix = draw_mix(options.mix, 16, 16, 16, random);
    Tensor images = Tensor::empty(batch->images.shape()), labels = Tensor::empty({16}, DType::i64);
    mix_images(unmixed->images, mix, images);
    partner_labels(unmixed->labels, mix, labels);
    CHECK(std::equal(images.data<float>(), images.data<float>() + images.elements(),
                     batch->images.data<float>()));
    CHECK(batch->other_labels.integers() == labels.integers());
    CHECK(batch->lam == mix.lam);
    cuts += mix.cut;
  }
  CHECK(steps == 8);
  CHECK((cuts > 0 && cuts < 8));
}

}  // namespace tessera
