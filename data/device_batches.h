#pragma once

#include <memory>

#include "data/augment/mix.h"
#include "data/augment/pipeline.h"
#include "data/delivery.h"
#include "data/feed.h"
#include "engine/core/tensor.h"

namespace tessera {

struct Batch;

// The host's side of batches that a GPU makes. They go through `slots`, which are filled in turn.
class DeviceBatches {
 public:
  // Decodes the whole split if it is kept on the device. Fails, naming the file, if an image cannot be
  // decoded.
  DeviceBatches(std::shared_ptr<const Split> split, const Pipeline& pipeline, const DeliveryOptions& options,
                int64_t batch, int64_t slots);
  ~DeviceBatches();

  bool resident() const { return feed_->keeps_pictures(); }

  // Waits until the slot's former content has left the host, so that it can be filled again.
  void wait_for(int64_t slot) { feed_->wait_for(slot); }
  // Draws image i of the slot's batch, which is image `index` of the split. Callable from many threads.
  void draw(int64_t slot, int64_t i, int64_t index, Random random) const;
  // Sends the slot's batch to the device after all its images are drawn. Callable from any thread.
  void send(int64_t slot, int64_t images, const Mix& mix) const;
  // Fills `batch` with device tensors. They are the same memory each time and valid until the next call.
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
