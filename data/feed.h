#pragma once

// Batches that a GPU makes. Its side of the loader, of one device; data/device_batches.h is the host's.
//
// A batch goes two ways at once. Ahead of its step, on a stream of its own: what was drawn for its pictures
// is copied out of pinned memory, and their bytes are changed accordingly, a block a picture; or, where the
// set does not fit in device memory, bytes that the host has made are copied instead. With the step, on its
// stream: bytes are normalised, erased, mixed and written where the step reads them, always the same place,
// so that the step's graph needs neither a second copy of itself nor one of its input.

#include <memory>

#include "data/augment/erasing_kernels.h"
#include "data/augment/operation.h"

namespace tessera {

// What a GPU is told of one picture of a batch.
struct FeedRecord {
  int64_t index = 0, label = 0;  // in the split
  int partner = 0;               // the picture of the batch that is mixed in
  int changes = 0;               // drawn for it
  Erasure erasure{};
};

struct FeedPlan {
  int64_t batch = 0, slots = 0;  // pictures, and batches on their way at a time
  int height = 0, width = 0;
  int64_t pictures = 0;  // of the set, to be kept on the device where it fits; 0: batches bring their bytes
  int most_changes = 0;  // of a picture
  std::array<std::array<float, 256>, 3> table{};  // the bytes' values, normalised, by channel
  ErasingFill fill{};

  int64_t picture_bytes() const { return int64_t{3} * height * width; }
};

// How a batch is mixed: not at all, by Mixup, or by CutMix of a box.
struct FeedMix {
  enum class Kind : uint8_t { none, mixup, cutmix } kind = Kind::none;
  double lam = 1;
  int top = 0, left = 0, bottom = 0, right = 0;
};

// Device memory that a batch is written to.
struct FeedTarget {
  void* images = nullptr;           // [B, 3, H, W]
  void* shares = nullptr;           // [B, classes], of the classes; null: not wanted
  bool narrow = false;              // both are bf16, not f32
  int64_t* labels = nullptr;        // [B]
  int64_t* other_labels = nullptr;  // [B], of the partners
  int64_t classes = 0;
};

class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Whether the set's pictures are kept on the device; else a batch brings its bytes.
  virtual bool keeps_pictures() const = 0;
  // Puts pictures from the `first` one on there.
  virtual void keep(int64_t first, int64_t count, const uint8_t* bytes) = 0;

  // The host's memory of a slot, which wait_for() makes its own again after a send().
  struct Slot {
    FeedRecord* records;  // [B]
    Change* changes;      // [B, most_changes], where pictures are kept
    uint8_t* bytes;       // [B, H, W, 3], where they are not
  };
  virtual Slot slot(int64_t number) const = 0;
  virtual void wait_for(int64_t slot) = 0;
  // Starts the slot's batch of so many pictures on its way. From any thread.
  virtual void send(int64_t slot, int64_t images) = 0;
  // Has it written to the target, in the order of the step's work.
  virtual void deliver(int64_t slot, int64_t images, const FeedMix& mix, const FeedTarget& target) = 0;
};

std::unique_ptr<Feed> make_feed_on_cuda(const FeedPlan& plan);  // feed_cuda.cu

}  // namespace tessera
