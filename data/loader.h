#pragma once

#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <memory>
#include <vector>

#include "data/augment/pipeline.h"
#include "data/dataset.h"
#include "data/device_batches.h"
#include "data/mix.h"
#include "data/sampler.h"
#include "data/token_labels.h"
#include "engine/core/parallel.h"
#include "engine/core/tensor.h"

namespace tessera {

// On the CPU, or all tensors on the device that they are delivered to.
struct Batch {
  Tensor images;        // [B, 3, H, W] f32, or as DeliveryOptions say
  Tensor labels;        // [B] i64
  Tensor masks;         // [B, H, W] i64, of a split that has them; Pipeline::none: of no class
  Tensor other_labels;  // [B] i64, of the pictures mixed in; undefined: the batch is not mixed
  double lam = 1;       // the share of `labels` in a mixed batch, `other_labels` having the rest
  Tensor token_maps;    // [B, 2, T, h, w] f32, where there are TokenLabels: of the whole pictures
  Tensor token_views;   // [B, 6] f64, then too: where the batch's pictures lie in those. The point
                        // (x, y), in fractions of width and height, is (a x + b y + c, d x + e y + f)
  Tensor shares;        // [B, K] of the images' type, that of each class; of a GPU's, where they are wanted
  Tensor host_labels;   // [B] i64 on the CPU: the labels of a GPU's
  std::vector<int64_t> indices;  // of the pictures in their split. [B]
};

struct LoaderOptions {
  SamplerOptions sampler;
  MixOptions mix{};
  std::shared_ptr<const TokenLabels> token_labels{};  // of the split's pictures; null: none
  uint64_t seed = 0;
  int depth = 3;  // batches in memory: the one in use and those made ahead
  DeliveryOptions delivery{};
};

// Decodes, augments and packs batches ahead of the training step, in TBB workers of low priority; what they
// have not done when it is needed, next() does itself, so one thread is enough; and next() mixes. The draws
// for a picture come from Random(seed).split(epoch).split(position in the epoch), those for mixing from a
// like stream of the batch: batches have the same bits whatever the thread count, and an epoch may start at
// any step. Memory is `depth` batches and one for mixing, used again and again.
//
// For a GPU it does the drawing alone, and whoever draws a batch's last picture sends the batch off: what is
// done to pictures, and all else but the reading of a set that the device cannot keep, is done there.
//
// A batch is cut into pieces of a few pictures, numbered through the epoch. Whoever has time claims the
// lowest piece that is open, so the oldest batch is always served first.
class Loader {
 public:
  Loader(std::shared_ptr<const Split> split, Pipeline pipeline, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches() const { return sampler_.batches(); }  // in an epoch
  int64_t images() const { return sampler_.images(); }    // that they hold

  // Goes to batch `step` of epoch `epoch` and sets workers on it; drops what was made ahead of another place.
  void start(int64_t epoch, int64_t step = 0);
  // The next batch, or null after the epoch's last one. It lasts until the call after this one; a tensor that
  // is still held then keeps its numbers, but on a GPU gets the next batch's. Fails with the picture's path
  // where one cannot be decoded.
  const Batch* next();

  // Whether the pictures' bytes are kept on the device.
  bool resident() const { return device_ && device_->resident(); }
  // Seconds that next() has taken since the loader was made: the time that steps stood still for data.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot;

  Slot& slot(int64_t step) const { return *slots_[static_cast<size_t>(step) % slots_.size()]; }
  void order_next_epoch();
  void make_next_order();        // by a worker
  void open(int64_t step);       // lets the batch's pieces be claimed
  int64_t claim(int64_t limit);  // the lowest open piece below `limit`, or -1
  void make(int64_t piece) const;
  void decode(int64_t index, const Random& random, Image& image, Image& mask) const;
  void send(int64_t step) const;  // to the device, all pieces being made
  void fill(Slot& slot, int64_t begin, int64_t end, int64_t first) const;
  void label_tokens(const Batch& batch, int64_t i, const Affine& map, const Image& whole) const;
  void finish(int64_t step);  // until the batch is made
  Mix draw_mix_of(int64_t step, int64_t images) const;
  void mix(Batch& batch, int64_t step);
  void call_workers();
  void work();  // one piece, then calls again
  void stop();

  std::shared_ptr<const Split> split_;
  Pipeline pipeline_;
  Sampler sampler_;
  MixOptions mix_;
  std::shared_ptr<const TokenLabels> token_labels_;
  Tensor mixed_images_, mixed_labels_;  // room for a full batch
  uint64_t seed_;
  int64_t piece_images_, pieces_per_batch_;
  int64_t epoch_ = 0;
  int64_t step_;                // the batch that next() gives
  bool delivered_ = false;      // the batch before it is in the caller's hands
  std::vector<int64_t> order_;  // of the epoch's pictures
  struct {
    int64_t epoch = -1;
    std::vector<int64_t> order;
    Handover handover;
  } ahead_;  // the next epoch's, made by a worker
  double wait_seconds_ = 0;

  std::unique_ptr<DeviceBatches> device_;  // null on the CPU
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<int64_t> next_piece_ = 0, open_pieces_ = 0;
  std::atomic<int> workers_ = 0;  // tasks that are queued or at work
  tbb::task_arena arena_;
  tbb::task_group tasks_;
};

}  // namespace tessera
