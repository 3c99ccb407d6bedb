#include "data/device_batches.h"

#include <algorithm>

#include "data/loader.h"
#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/per_thread.h"

namespace tessera {

namespace {

constexpr int64_t staged_bytes = int64_t{16} << 20;  // buffer for uploading the data set

FeedPlan plan_of(const Split& split, const Pipeline& pipeline, const DeliveryOptions& options, int64_t batch,
                 int64_t slots) {
  FeedPlan plan;
  plan.batch = batch;
  plan.slots = slots;
  plan.height = static_cast<int>(pipeline.image_shape()[1]);
  plan.width = static_cast<int>(pipeline.image_shape()[2]);
  plan.pictures = options.resident && pipeline.is_drawn() ? split.size() : 0;
  plan.most_changes = plan.pictures > 0 ? pipeline.most_changes() : 0;
  plan.table = pipeline.normalise().table();
  plan.fill = pipeline.erasing_fill();
  return plan;
}

std::unique_ptr<Feed> make_feed(Device device, [[maybe_unused]] const FeedPlan& plan) {
  require(device);
  if constexpr (has_cuda)
    if (device == Device::cuda) return make_feed_on_cuda(plan);
  fail("loader: the ", device, " makes no batches by itself");
}

FeedMix feed_mix(const Mix& mix) {
  if (mix.partners.empty()) return {};
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  return {mix.cut ? FeedMix::Kind::cutmix : FeedMix::Kind::mixup,
          mix.lam,
          number(mix.box.top),
          number(mix.box.left),
          number(mix.box.bottom),
          number(mix.box.right)};
}

}  // namespace

DeviceBatches::DeviceBatches(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                             const DeliveryOptions& options, int64_t batch, int64_t slots)
    : split_(std::move(split)),
      pipeline_(pipeline),
      options_(options),
      feed_(make_feed(options.device, plan_of(*split_, pipeline, options, batch, slots))) {
  check(!split_->has_masks() && !split_->has_latents(),
        "loader: batches with masks, and those of latents, are made on the CPU alone");
  check(options.dtype == DType::f32 || options.dtype == DType::bf16, "loader: images of ", options.dtype,
        "; a GPU makes f32 and bf16");
  const auto made = [&](const Shape& shape, DType dtype) {
    return Tensor::empty(shape, dtype, options.device);
  };
  images_ = made(pipeline.image_shape().inserted(0, batch), options.dtype);
  labels_ = made({batch}, DType::i64);
  other_labels_ = made({batch}, DType::i64);
  if (options.classes > 0) shares_ = made({batch, options.classes}, options.dtype);
  if (feed_->keeps_pictures()) keep_all();
}

DeviceBatches::~DeviceBatches() = default;

void DeviceBatches::keep_all() const {
  const int64_t bytes = pipeline_.image_shape().elements(), size = split_->size();
  const int64_t most = std::clamp<int64_t>(staged_bytes / bytes, 1, size);
  std::vector<uint8_t> staged(static_cast<size_t>(most * bytes));
  for (int64_t first = 0; first < size; first += most) {
    const int64_t count = std::min(most, size - first);
    parallel_for(count, 16, [&](int64_t begin, int64_t end) {
      Image image;
      for (int64_t i = begin; i < end; ++i) {
        split_->image(first + i, image);
        check(std::ssize(image.pixels) == bytes, split_->source(first + i), ": ", image.height, " x ",
              image.width, " pixels, the set has ", pipeline_.image_shape());
        std::copy(image.pixels.begin(), image.pixels.end(), staged.begin() + i * bytes);
      }
    });
    feed_->keep(first, count, staged.data());
  }
}

void DeviceBatches::draw(int64_t slot, int64_t i, int64_t index, Random random) const {
  const Feed::Slot to = feed_->slot(slot);
  FeedRecord record{.index = index, .label = split_->label(index)};
  if (feed_->keeps_pictures()) {
    static const PerThread<std::vector<Change>> of_all;
    std::vector<Change>& changes = of_all.of_this_thread();
    changes.clear();
    pipeline_.draw(random, changes);
    record.changes = static_cast<int>(changes.size());
    std::copy(changes.begin(), changes.end(), to.changes + i * pipeline_.most_changes());
  } else {
    static const PerThread<Image> images;
    Image& image = images.of_this_thread();
    pipeline_.read(*split_, index, image);
    pipeline_.run_pixel_ops(image, random, Layer::picture);
    std::copy(image.pixels.begin(), image.pixels.end(), to.bytes + i * pipeline_.image_shape().elements());
  }
  record.erasure = pipeline_.draw_erasure(random);
  to.records[i] = record;
}

void DeviceBatches::send(int64_t slot, int64_t images, const Mix& mix) const {
  FeedRecord* records = feed_->slot(slot).records;
  for (size_t i = 0; i < mix.partners.size(); ++i) records[i].partner = static_cast<int>(mix.partners[i]);
  feed_->send(slot, images);
}

void DeviceBatches::deliver(int64_t slot, int64_t images, const Mix& mix, Batch& batch) const {
  const bool mixed = !mix.partners.empty();
  FeedTarget target{.images = images_.raw(), .narrow = options_.dtype == DType::bf16};
  target.labels = labels_.data<int64_t>();
  target.other_labels = other_labels_.data<int64_t>();
  if (shares_.defined()) {
    target.shares = shares_.raw();
    target.classes = options_.classes;
    batch.shares = shares_.rows(0, images);
  }
  feed_->deliver(slot, images, feed_mix(mix), target);
  const FeedRecord* records = feed_->slot(slot).records;
  batch.host_labels = Tensor::empty({images}, DType::i64);
  for (int64_t i = 0; i < images; ++i) batch.host_labels.data<int64_t>()[i] = records[i].label;
  batch.images = images_.rows(0, images);
  batch.labels = labels_.rows(0, images);
  if (mixed) batch.other_labels = other_labels_.rows(0, images);
  batch.lam = mix.lam;
}

}  // namespace tessera
