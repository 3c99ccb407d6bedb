#include "data/feed_cuda.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/core/storage.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/side_stream.h"

namespace tessera {

namespace {

constexpr size_t share_of_memory = 4;  // a data set may take a quarter of the free memory

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Offsets in a slot's memory, which holds records, changes and bytes.
struct Layout {
  size_t changes, bytes, end;

  explicit Layout(const FeedPlan& plan)
      : changes(padded(static_cast<size_t>(plan.batch) * sizeof(FeedRecord))),
        bytes(changes + padded(static_cast<size_t>(plan.batch * plan.most_changes) * sizeof(Change))),
        end(bytes + static_cast<size_t>(plan.batch * plan.picture_bytes())) {}
};

class Pinned {
 public:
  explicit Pinned(size_t bytes) {
    stream();  // makes sure that the device is initialised
    expect(cudaMallocHost(&memory_, bytes), "pinned memory");
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

// One batch in flight: its pinned memory, its device memory, and how far it is.
struct InFlight {
  Pinned host;
  Storage device;
  StreamEvent copied, ready, read;  // pinned memory is free; changes are done; the step has read it

  InFlight(size_t host_bytes, size_t device_bytes) : host(host_bytes), device(Device::cuda, device_bytes) {}
  std::byte* on_device() const { return static_cast<std::byte*>(device.data()); }
};

// Whether the data set is kept on the device: it must not exceed its share of the free memory, and its images
// must fit in a block's shared memory.
bool is_kept(const FeedPlan& plan) {
  if (plan.pictures == 0 || !can_change_pictures(plan.height, plan.width)) return false;
  size_t free = 0, total = 0;
  expect(cudaMemGetInfo(&free, &total), "memory");
  return static_cast<size_t>(plan.pictures * plan.picture_bytes()) <= free / share_of_memory;
}

class CudaFeed final : public Feed {
 public:
  explicit CudaFeed(const FeedPlan& plan) : plan_(plan), layout_(plan), table_(3 * 256) {
    upload(table_.data(), plan.table.data(), sizeof(plan.table));
    if (is_kept(plan)) set_.emplace(plan.pictures * plan.picture_bytes());
    for (int64_t i = 0; i < plan.slots; ++i)
      in_flight_.push_back(std::make_unique<InFlight>(copied_bytes(), layout_.end));
    synchronize();  // former users of this memory may still be running on another stream
  }

  bool keeps_pictures() const override { return set_.has_value(); }

  void keep(int64_t first, int64_t count, const uint8_t* bytes) override {
    upload(set_->data() + first * plan_.picture_bytes(), bytes,
           static_cast<size_t>(count * plan_.picture_bytes()));
    synchronize();
  }

  Slot slot(int64_t number) const override {
    std::byte* host = batch(number).host.data();
    return {reinterpret_cast<FeedRecord*>(host), reinterpret_cast<Change*>(host + layout_.changes),
            reinterpret_cast<uint8_t*>(host + layout_.bytes)};
  }

  void wait_for(int64_t slot) override { batch(slot).copied.make_host_wait(); }

  void send(int64_t slot, int64_t images) override {
    const SideStream::On on(side_);
    const InFlight& to = batch(slot);
    to.read.make_stream_wait();
    expect(cudaMemcpyAsync(to.on_device(), to.host.data(), copied_bytes(), cudaMemcpyHostToDevice, stream()),
           "copy to the GPU");
    to.copied.record();
    if (set_)
      change_pictures({.set = set_->data(),
                       .records = records(to),
                       .changes = reinterpret_cast<const Change*>(to.on_device() + layout_.changes),
                       .most_changes = plan_.most_changes,
                       .images = images,
                       .height = plan_.height,
                       .width = plan_.width,
                       .to = bytes(to)});
    to.ready.record();
  }

  void deliver(int64_t slot, int64_t images, const FeedMix& mix, const FeedTarget& target) override {
    const InFlight& from = batch(slot);
    from.ready.make_stream_wait();
    pack_batch({.bytes = bytes(from),
                .records = records(from),
                .table = table_.data(),
                .fill = plan_.fill,
                .images = images,
                .height = plan_.height,
                .width = plan_.width,
                .mix = mix,
                .target = target});
    from.read.record();
  }

 private:
  InFlight& batch(int64_t slot) const { return *in_flight_[static_cast<size_t>(slot)]; }
  size_t copied_bytes() const { return set_ ? layout_.bytes : layout_.end; }
  static const FeedRecord* records(const InFlight& batch) {
    return reinterpret_cast<const FeedRecord*>(batch.on_device());
  }
  uint8_t* bytes(const InFlight& batch) const {
    return reinterpret_cast<uint8_t*>(batch.on_device() + layout_.bytes);
  }

  FeedPlan plan_;
  Layout layout_;
  Scratch<float> table_;
  std::optional<Scratch<uint8_t>> set_;
  std::vector<std::unique_ptr<InFlight>> in_flight_;
  SideStream side_;  // last member: destroyed, and so finished, first
};

}  // namespace

std::unique_ptr<Feed> make_feed_on_cuda(const FeedPlan& plan) { return std::make_unique<CudaFeed>(plan); }

}  // namespace tessera
