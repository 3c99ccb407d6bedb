#pragma once

#include <memory>

#include "data/augment/pipeline.h"
#include "data/feed.h"
#include "data/mix.h"
#include "engine/core/tensor.h"

namespace tessera {

struct Batch;

// Where a loader's batches are delivered. On a GPU they are made there too, from the same draws to the same
// bytes: the host says what is drawn, a stream beside the step's does it (data/feed.h).
struct DeliveryOptions {
  Device device = Device::cpu;
  DType dtype = DType::f32;  // of the images; bf16 on a GPU alone
  bool resident = true;      // keep the set's bytes in device memory, where they fit
  int64_t classes = 0;       // of a batch's shares, mixed or not; 0: it has none
};

// The host's side of the batches that a GPU makes, in `slots` that are filled in turn.
class DeviceBatches {
 public:
  // Decodes the whole split where it is kept on the device; fails with the path of a picture that cannot be.
  DeviceBatches(std::shared_ptr<const Split> split, const Pipeline& pipeline, const DeliveryOptions& options,
                int64_t batch, int64_t slots);
  ~DeviceBatches();

  bool resident() const { return feed_->keeps_pictures(); }

  // Before a slot is filled again: what it held has left the host.
  void wait_for(int64_t slot) { feed_->wait_for(slot); }
  // Writes down picture i of the slot's batch, number `index` of the split; many threads at once.
  void draw(int64_t slot, int64_t i, int64_t index, Random random) const;
  // All pictures are written down: sends them off, ahead of their step. From any thread.
  void send(int64_t slot, int64_t images, const Mix& mix) const;
  // The batch as tensors of the device, the same memory each time: its numbers last until the next one.
  void deliver(int64_t slot, int64_t images, const Mix& mix, Batch& batch) const;

 private:
  void keep_all() const;

  std::shared_ptr<const Split> split_;
  Pipeline pipeline_;
  DeliveryOptions options_;
  std::unique_ptr<Feed> feed_;
  Tensor images_, labels_, other_labels_, shares_;
};

}  // namespace tessera
