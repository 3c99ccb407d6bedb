#pragma once

// The device's side of batches that a GPU makes; data/device_batches.h is the host's side.
//
// A batch is made in two stages. Ahead of its training step, on a stream of its own, the drawn changes are
// copied from pinned memory and applied to the images in device memory, one block an image. (If the data set
// does not fit in device memory, bytes that the host has augmented are copied instead.) Then, on the step's
// stream, the bytes are normalised, erased, mixed and written to the step's input, which always has the same
// address, so that one recorded graph of the step serves all batches without copying its input.

#include <memory>

#include "data/augment/erasure.h"
#include "data/augment/operation.h"

namespace tessera {

// What a GPU receives about one image of a batch.
struct FeedRecord {
  int64_t index = 0, label = 0;  // index in the split, and class
  int partner = 0;               // index in the batch of the image that is mixed in
  int changes = 0;               // number of changes
  Erasure erasure{};
};

struct FeedPlan {
  int64_t batch = 0, slots = 0;  // images in a batch; batches in flight
  int height = 0, width = 0;
  int64_t pictures = 0;  // images to keep on the device if they fit; 0: batches bring their bytes
  int most_changes = 0;  // upper bound for one image
  std::array<std::array<float, 256>, 3> table{};  // normalised value of each byte, by channel
  ErasingFill fill{};

  int64_t picture_bytes() const { return int64_t{3} * height * width; }
};

// How a batch is mixed; the box is CutMix's.
struct FeedMix {
  enum class Kind : uint8_t { none, mixup, cutmix } kind = Kind::none;
  double lam = 1;
  int top = 0, left = 0, bottom = 0, right = 0;
};

// The device memory that a batch is written to.
struct FeedTarget {
  void* images = nullptr;           // [B, 3, H, W]
  void* shares = nullptr;           // [B, classes], share of each class; null: not wanted
  bool narrow = false;              // images and shares are bf16; false: f32
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

  // Whether the data set's images are kept on the device; otherwise each batch brings its bytes.
  virtual bool keeps_pictures() const = 0;
  // Uploads `count` images, the first of which is image `first` of the set.
  virtual void keep(int64_t first, int64_t count, const uint8_t* bytes) = 0;

  // The host's pinned memory of a slot. After send(), wait_for() must return before it is written again.
  struct Slot {
    FeedRecord* records;  // [B]
    Change* changes;      // [B, most_changes], if images are kept
    uint8_t* bytes;       // [B, H, W, 3], if they are not
  };
  virtual Slot slot(int64_t number) const = 0;
  virtual void wait_for(int64_t slot) = 0;
  // Starts the copy of a slot's batch of `images` images and its changes. Callable from any thread.
  virtual void send(int64_t slot, int64_t images) = 0;
  // Writes the batch to the target, on the step's stream.
  virtual void deliver(int64_t slot, int64_t images, const FeedMix& mix, const FeedTarget& target) = 0;
};

std::unique_ptr<Feed> make_feed_on_cuda(const FeedPlan& plan);  // feed_cuda.cu

}  // namespace tessera
