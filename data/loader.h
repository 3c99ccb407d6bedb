#pragma once

#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "data/augment/mix.h"
#include "data/augment/pipeline.h"
#include "data/dataset.h"
#include "data/delivery.h"
#include "data/sampler.h"
#include "data/token_labels.h"
#include "engine/core/parallel.h"
#include "engine/core/tensor.h"

namespace tessera {

class DeviceBatches;

/// A batch of a Loader. All tensors but host_labels are on the device that the loader delivers to.
struct Batch {
  Tensor images;        ///< [B, 3, H, W], f32 or DeliveryOptions::dtype; of latents [B, C, H, W]
  Tensor labels;        ///< [B] i64
  Tensor masks;         ///< [B, H, W] i64 if the split has masks; Pipeline::none for no class
  Tensor other_labels;  ///< [B] i64, of the images mixed in; undefined if the batch is not mixed
  double lam = 1;       ///< weight of `labels` in a mixed batch; `other_labels` have 1 - lam
  Tensor token_maps;    ///< [B, 2, T, h, w] f32 if there are TokenLabels: the maps of the stored images
  Tensor token_views;   ///< [B, 6] f64 if there are TokenLabels: the part of its map that an image shows. The
                        ///< image's point (x, y) is the map's (a x + b y + c, d x + e y + f), all in
                        ///< fractions of width and height
  Tensor shares;        ///< [B, K] in the images' type: target share of each class; on a GPU if wanted
  Tensor host_labels;   ///< [B] i64 on the CPU: copy of a GPU batch's labels
  std::vector<int64_t> indices;  ///< of the images in their split. [B]
};

struct LoaderOptions {
  SamplerOptions sampler;
  MixOptions mix{};
  std::shared_ptr<const TokenLabels> token_labels{};  ///< of the split's images; null: none
  uint64_t seed = 0;
  int depth = 3;  ///< batches in memory: one in use, the others made ahead
  DeliveryOptions delivery{};
  /// The images [first, second) of a batch of so many that are made, where other processes make the others,
  /// whose pixels hold anything then; labels are those of all. Null: all of them. Batches that may be mixed,
  /// and those for a GPU, are made whole.
  std::function<std::pair<int64_t, int64_t>(int64_t images)> own{};
};

/// Decodes, augments and packs batches ahead of the training step, in TBB workers of low priority. next()
/// mixes the batch and does itself what the workers have not finished, so one thread is enough. Each image
/// draws from Random(seed).split(epoch).split(position in the epoch), and mixing from a similar stream of the
/// batch; so batches have the same bits whatever the number of threads, and an epoch can start at any step.
/// The memory is that of `depth` batches and one for mixing, and is reused.
///
/// For a GPU the loader only draws, and the worker that draws a batch's last image sends the batch off. The
/// device does the rest, except for images that it cannot keep in memory: the host decodes and augments
/// those.
///
/// A batch is cut into pieces of a few images, numbered through the epoch. A free worker claims the lowest
/// open piece, so the oldest batch is finished first.
class Loader {
 public:
  Loader(std::shared_ptr<const Split> split, Pipeline pipeline, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches() const { return sampler_.batches(); }  ///< per epoch
  int64_t images() const { return sampler_.images(); }    ///< in all batches of an epoch

  /// Moves to batch `step` of epoch `epoch` and starts the workers. Batches made ahead elsewhere are dropped.
  void start(int64_t epoch, int64_t step = 0);
  /// The next batch, or null after the last of the epoch. It is valid until the next call. A CPU tensor that
  /// the caller still holds then keeps its values; a GPU tensor is overwritten. Fails, naming the file, if an
  /// image cannot be decoded.
  const Batch* next();

  /// Whether the data set is kept in device memory.
  bool resident() const;
  /// Seconds spent in next() since the loader was made, which is the time that training waited for data.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot;

  Slot& slot(int64_t step) const { return *slots_[static_cast<size_t>(step) % slots_.size()]; }
  void order_next_epoch();
  void make_next_order();        ///< called by a worker
  void open(int64_t step);       ///< makes the batch's pieces claimable
  int64_t claim(int64_t limit);  ///< the lowest open piece below `limit`, or -1
  void make(int64_t piece) const;
  void decode(int64_t index, const Random& random, Image& image, Image& mask) const;
  void send(int64_t step) const;  ///< to the device, after all pieces are made
  void fill(Slot& slot, int64_t begin, int64_t end, int64_t first) const;
  void label_tokens(const Batch& batch, int64_t i, const Affine& map, const Image& whole) const;
  void finish(int64_t step);  ///< returns when the batch is complete
  Mix draw_mix_of(int64_t step, int64_t images) const;
  void mix(Batch& batch, int64_t step);
  void call_workers();
  void work();  ///< makes one piece, then calls workers again
  void stop();

  std::shared_ptr<const Split> split_;
  Pipeline pipeline_;
  Sampler sampler_;
  MixOptions mix_;
  std::shared_ptr<const TokenLabels> token_labels_;
  std::function<std::pair<int64_t, int64_t>(int64_t images)> own_;
  Tensor mixed_images_, mixed_labels_;  ///< memory for a full batch
  uint64_t seed_;
  int64_t piece_images_, pieces_per_batch_;
  int64_t epoch_ = 0;
  int64_t step_;                ///< the batch that next() returns
  bool delivered_ = false;      ///< whether the caller has the batch before it
  std::vector<int64_t> order_;  ///< indices of the epoch's images
  struct {
    int64_t epoch = -1;
    std::vector<int64_t> order;
    Handover handover;
  } ahead_;  ///< the next epoch's order, made by a worker
  double wait_seconds_ = 0;

  std::unique_ptr<DeviceBatches> device_;  ///< null on the CPU
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<int64_t> next_piece_ = 0, open_pieces_ = 0;
  std::atomic<int> workers_ = 0;  ///< tasks queued or running
  Handover made_;                 ///< from the workers to stop()
  tbb::task_arena arena_;
  tbb::task_group tasks_;
};

}  // namespace tessera
