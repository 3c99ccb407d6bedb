#include "models/parts/by_image.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/core/dispatch.h"
#include "engine/core/frozen_weights.h"
#include "engine/core/parallel.h"
#include "engine/ops/activations.h"
#include "engine/ops/reduce.h"
#include "models/parts/attention.h"
#include "models/parts/decay_watch.h"
#include "tests/error_of.h"
#include "tests/models/training.h"

using namespace tessera;

namespace {

// Takes the mean of each image's values, and notes of how many images it was asked for; not of the dry run of
// one image, by which by_image() learns the shape.
struct Layers {
  Tensor operator()(const Tensor& x) const {
    if (x.dim(0) > 1 || !DryRun::active()) {
      const std::lock_guard lock(*mutex);
      asked->insert(x.dim(0));
    }
    return mean(gelu(x), {1});
  }

  std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();
  std::shared_ptr<std::multiset<int64_t>> asked = std::make_shared<std::multiset<int64_t>>();
};

using Asked = std::multiset<int64_t>;

Asked asked(int64_t images, int64_t group, const Pass& pass = {}) {
  const Layers layers;
  by_image(random_images({images, 5, 3}), pass, group, layers);
  return *layers.asked;
}

const Asked all_at_once{32};

struct OfThreads {
  explicit OfThreads(int count) { set_threads(count); }
  ~OfThreads() { set_threads(0); }
};

// Small networks of the architectures that run some of their layers by image.
std::vector<Json> models() {
  Json vit = preset("sl-vit", 32, 10), rmt = preset("rmt-xt", 32, 10), sdt = preset("sdt-xt", 32, 10),
       efficientnet = preset("efficientnet-b0", 32, 10), pit = preset("sl-pit", 32, 10),
       resnet = preset("resnet56", 32, 10);
  vit["depth"] = 2;
  resnet["depth"] = 8;
  for (Json* config : {&rmt, &sdt, &pit})
    for (Json& depth : config->at("depth")) depth = 1;
  Json& stages = efficientnet["stages"];
  stages.erase(stages.begin() + 3, stages.end());
  return {vit, rmt, sdt, efficientnet, pit, resnet};
}

}  // namespace

TEST_CASE("by_image: groups of images, the last one smaller, on one thread and on two") {
  for (const int count : {1, 2}) {
    const OfThreads of(count);
    CHECK(asked(33, 4) == Asked{4, 4, 4, 4, 4, 4, 4, 4, 1});
    CHECK(asked(8, 1).size() == 8);
    const Tensor x = random_images({33, 5, 3});
    const Tensor y = by_image(x, {}, 4, Layers());
    CHECK(y.shape() == Shape{33, 3});
    CHECK(y.values() == Layers()(x).values());
  }
}

TEST_CASE("by_image: all at once where groups are few, in training, and where somebody looks") {
  const OfThreads two(2);
  CHECK(asked(32, 4).size() == 8);
  CHECK(asked(31, 4) == Asked{31});
  CHECK(asked(32, 4, {.training = true}) == all_at_once);
  {
    const Tape tape;
    CHECK(asked(32, 4) == all_at_once);
  }
  {
    const Observer observer([](const ForwardEvent&) {});
    CHECK(asked(32, 4) == all_at_once);
  }
  {
    const PlainAttention plain;
    CHECK(asked(32, 4) == all_at_once);
  }
  {
    const DecayWatch watch([](const Decay&, const Tensor&) {});
    CHECK(asked(32, 4) == all_at_once);
  }
  {
    const DryRun dry;
    CHECK(asked(32, 4) == all_at_once);
  }
  const SerialLoops serial;
  CHECK(asked(32, 4) == all_at_once);
}

TEST_CASE(
    "by_image: an error of the layers comes through; no group, and layers that join images, are refused") {
  const OfThreads two(2);
  const Tensor x = random_images({8, 5, 3});
  CHECK(error_of([&] { by_image(x, {}, 0, Layers()); }) == "by_image: groups of 0 images, wanted 1 or more");
  CHECK(error_of([&] { by_image(x, {}, 1, [](const Tensor& y) { return mean(y, {0}); }); }) ==
        "by_image: the layers made [5, 3] of one image [1, 5, 3], wanted [1, ...]");
  const auto fails = [](const Tensor& y) {
    if (!DryRun::active()) fail("no such layer");
    return y;
  };
  CHECK(error_of([&] { by_image(x, {}, 1, fails); }) == "no such layer");
}

TEST_CASE("wide_by_image: in groups in f32, all at once in bf16") {
  const OfThreads two(2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    CAPTURE(dtype);
    std::atomic<int64_t> most = 0;  // images at once, beyond the one by which the shape is learned
    const auto layers = [&](const Tensor& x) {
      if (x.dim(0) > most) most = x.dim(0);
      return x;
    };
    const Tensor x = random_images({16, 5, 3}).to(dtype);
    CHECK(wide_by_image(x, {}, 1, layers).values() == x.values());
    CHECK(most == (dtype == DType::bf16 ? 16 : 1));
  }
}

TEST_CASE("by_image: logits have the same bits as those of all images at once") {
  const OfThreads two(2);
  for (const Json& config : models())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(config.at("arch"));
      CAPTURE(dtype);
      const Model model = build(config, {.seed = 1, .dtype = dtype});
      const FrozenWeights frozen(model.parameters.state());  // which both threads make panels of
      const Tensor images = random_images({64, 3, 32, 32}).to(dtype);
      Pass pass;
      const std::vector<double> grouped = model.logits(images, pass).values();
      const SerialLoops serial;
      CHECK(model.logits(images, pass).values() == grouped);
    }
}
