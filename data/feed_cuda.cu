#include "data/feed_cuda.h"

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/core/storage.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/side_stream.h"

namespace tessera {

namespace {

constexpr size_t share_of_memory = 4;  // a set takes a quarter of what is free, at the most

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

// A slot's memory: records, changes, bytes.
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
    stream();  // the device is ready
    expect(cudaMallocHost(&memory_, bytes), "pinned memory");
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

// A batch's way: where the host writes it down, where it is on the device, and how far it is.
struct Way {
  Pinned host;
  Storage device;
  StreamEvent copied, ready, read;  // out of the host's memory; changed; by the step

  Way(size_t host_bytes, size_t device_bytes) : host(host_bytes), device(Device::cuda, device_bytes) {}
  std::byte* on_device() const { return static_cast<std::byte*>(device.data()); }
};

// Whether the set is kept: where it takes no more than its share of the free memory, and a block has room to
// change its pictures.
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
      ways_.push_back(std::make_unique<Way>(copied_bytes(), layout_.end));
    synchronize();  // the memory's former owners are done with it
  }

  bool keeps_pictures() const override { return set_.has_value(); }

  void keep(int64_t first, int64_t count, const uint8_t* bytes) override {
    upload(set_->data() + first * plan_.picture_bytes(), bytes,
           static_cast<size_t>(count * plan_.picture_bytes()));
    synchronize();
  }

  Slot slot(int64_t number) const override {
    std::byte* host = way(number).host.data();
    return {reinterpret_cast<FeedRecord*>(host), reinterpret_cast<Change*>(host + layout_.changes),
            reinterpret_cast<uint8_t*>(host + layout_.bytes)};
  }

  void wait_for(int64_t slot) override { way(slot).copied.make_host_wait(); }

  void send(int64_t slot, int64_t images) override {
    const SideStream::On on(side_);
    const Way& to = way(slot);
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
    const Way& from = way(slot);
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
  Way& way(int64_t slot) const { return *ways_[static_cast<size_t>(slot)]; }
  size_t copied_bytes() const { return set_ ? layout_.bytes : layout_.end; }
  static const FeedRecord* records(const Way& way) {
    return reinterpret_cast<const FeedRecord*>(way.on_device());
  }
  uint8_t* bytes(const Way& way) const { return reinterpret_cast<uint8_t*>(way.on_device() + layout_.bytes); }

  FeedPlan plan_;
  Layout layout_;
  Scratch<float> table_;
  std::optional<Scratch<uint8_t>> set_;
  std::vector<std::unique_ptr<Way>> ways_;
  SideStream side_;  // the last: it ends first
};

}  // namespace

std::unique_ptr<Feed> make_feed_on_cuda(const FeedPlan& plan) { return std::make_unique<CudaFeed>(plan); }

}  // namespace tessera
