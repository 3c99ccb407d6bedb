// Compares what a GPU, or the emulator in its place, makes of pictures with what the CPU does, bit for bit.
#include "data/augment/autoaugment.h"
#include "data/augment/randaugment.h"
#include "data/device_batches.h"
#include "tests/data/device_batches.h"

namespace tessera {

namespace {

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

}  // namespace tessera
