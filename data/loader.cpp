#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "data/device_batches.h"
#include "data/loader_slot.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

#define TESSERA_TASK __attribute__((no_sanitize("thread")))  // it does not see oneTBB's handover of tasks
constexpr int64_t images_a_piece = 4, draws_a_piece = 64;    // for a GPU, which does the rest
constexpr uint64_t mix_tag = uint64_t{1} << 63;              // a stream above all positions in an epoch

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Loader::Loader(std::shared_ptr<const Split> split, Pipeline pipeline, const LoaderOptions& options)
    : split_(std::move(split)),
      pipeline_(std::move(pipeline)),
      sampler_(split_->size(), options.sampler, options.seed),
      mix_(options.mix),
      token_labels_(options.token_labels),
      own_(options.mix.any() || options.delivery.device != Device::cpu ? nullptr : options.own),
      seed_(options.seed),
      step_(sampler_.batches()),
      arena_(tbb::task_arena::automatic, 1, tbb::task_arena::priority::low) {
  check(options.depth >= 1, "loader: a depth of ", options.depth, " batches; at least 1 is needed");
  check(!mix_.any() || (!split_->has_masks() && !token_labels_), "loader: pictures with ",
        token_labels_ ? "token labels" : "masks", " are not mixed; leave mixup and cutmix off");
  check(!split_->has_latents() || (!mix_.any() && pipeline_.keeps_images()),
        "loader: latents are taken as they are stored; leave the augmentation off");
  check(!pipeline_.cuts_scenes() || split_->has_masks(),
        "loader: augment.scene_crop cuts pictures by their masks, and these have none");
  check(!token_labels_ || pipeline_.takes_originals(),
        "loader: token labels are of a whole picture, and of one ",
        "that is fitted the margins are gone; give augment.resized_crop");
  check(!token_labels_ || options.delivery.device == Device::cpu, "loader: token labels stay on the CPU");
  for (int i = 0; i < options.depth; ++i) slots_.push_back(std::make_unique<Slot>(i));
  if (options.delivery.device != Device::cpu)
    device_ =
        std::make_unique<DeviceBatches>(split_, pipeline_, options.delivery, sampler_.batch(), options.depth);
  piece_images_ = resident() ? draws_a_piece : images_a_piece;
  pieces_per_batch_ = (sampler_.batch() + piece_images_ - 1) / piece_images_;
}

Loader::~Loader() { stop(); }

bool Loader::resident() const { return device_ && device_->resident(); }

void Loader::stop() {
  open_pieces_ = 0;
  arena_.execute([this] { tasks_.wait(); });
  made_.acquire();
  ahead_.handover.acquire();
}

void Loader::start(int64_t epoch, int64_t step) {
  check(epoch >= 0 && step >= 0 && step <= batches(), "loader: epoch ", epoch, ", batch ", step,
        "; batches are numbered 0 to ", batches() - 1);
  stop();
  epoch_ = epoch;
  step_ = step;
  delivered_ = false;
  order_ = ahead_.epoch == epoch ? std::move(ahead_.order) : sampler_.epoch(epoch);
  ahead_.epoch = -1;
  next_piece_ = step * pieces_per_batch_;
  for (int64_t ahead = 0; ahead < std::ssize(slots_); ++ahead) open(step + ahead);
  if (sampler_.shuffles()) order_next_epoch();
}

// A worker makes the next permutation ahead, because that takes as long as some training steps on a GPU.
void Loader::order_next_epoch() {
  ahead_.handover.release();
  arena_.execute([this] { tasks_.run([this]() TESSERA_TASK { make_next_order(); }); });
}

void Loader::make_next_order() {
  ahead_.handover.acquire();
  ahead_.order = sampler_.epoch(epoch_ + 1);
  ahead_.epoch = epoch_ + 1;
  ahead_.handover.release();
}

void Loader::open(int64_t step) {
  if (step >= batches()) return;
  Slot& to = slot(step);
  const int64_t first = step * sampler_.batch(), count = std::min(sampler_.batch(), images() - first);
  if (device_)
    device_->wait_for(to.number);
  else
    to.make_room(count, sampler_.batch(), pipeline_.image_shape(), split_->has_masks(), token_labels_.get());
  to.error = nullptr;
  to.failed_piece = -1;
  to.batch.indices.assign(order_.begin() + first, order_.begin() + first + count);
  to.pieces_left = pieces_per_batch_ + 1;  // one more for send()
  open_pieces_ = (step + 1) * pieces_per_batch_;
  call_workers();
}

int64_t Loader::claim(int64_t limit) {
  int64_t piece = next_piece_;
  while (piece < std::min<int64_t>(limit, open_pieces_))
    if (next_piece_.compare_exchange_weak(piece, piece + 1)) return piece;
  return -1;
}

void Loader::make(int64_t piece) const {
  const int64_t step = piece / pieces_per_batch_;
  Slot& to = slot(step);
  const int64_t begin = piece % pieces_per_batch_ * piece_images_;
  const int64_t end = std::min(begin + piece_images_, std::ssize(to.batch.indices));
  try {
    fill(to, begin, end, step * sampler_.batch());
  } catch (...) {
    to.fail_at(piece);
  }
  if (--to.pieces_left > 1) return;
  try {
    send(step);
  } catch (...) {
    to.fail_at(piece);
  }
  to.pieces_left = 0;
  to.pieces_left.notify_all();
}

void Loader::send(int64_t step) const {
  Slot& made = slot(step);
  if (!device_ || made.error) return;
  const int64_t images = std::ssize(made.batch.indices);
  made.mix = draw_mix_of(step, images);
  device_->send(made.number, images, made.mix);
}

// Reads an image, and its mask if the split has masks, as the pipeline takes them.
void Loader::decode(int64_t index, const Random& random, Image& image, Image& mask) const {
  if (pipeline_.cuts_scenes()) {
    split_->original(index, image);
    split_->original_mask(index, mask);
    return pipeline_.cut_scene(image, mask, random);
  }
  if (!split_->has_masks()) return pipeline_.read(*split_, index, image);
  split_->image(index, image);
  split_->mask(index, mask);
}

// Makes images [begin, end) of a batch whose first image has position `first` in the epoch.
void Loader::fill(Slot& slot, int64_t begin, int64_t end, int64_t first) const {
  const Random random = Random(seed_).split(static_cast<uint64_t>(epoch_));
  const int64_t floats = pipeline_.image_shape().elements(), pixels = floats / 3;
  const auto images = std::ssize(slot.batch.indices);
  const auto [own_first, own_end] = own_ ? own_(images) : std::pair(int64_t{0}, images);
  Image image, mask;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = slot.batch.indices[static_cast<size_t>(i)];
    if (i < own_first || i >= own_end) {
      slot.batch.labels.data<int64_t>()[i] = split_->label(index);
      continue;
    }
    const Random of_picture = random.split(static_cast<uint64_t>(first + i));
    if (split_->has_latents()) {
      split_->latent(index, of_picture, slot.batch.images.data<float>() + i * floats);
      slot.batch.labels.data<int64_t>()[i] = split_->label(index);
      continue;
    }
    if (device_) {
      device_->draw(slot.number, i, index, of_picture);
      continue;
    }
    decode(index, of_picture, image, mask);
    if (token_labels_)
      label_tokens(slot.batch, i, pipeline_.map_of(of_picture, image.height, image.width), image);
    pipeline_(image, of_picture, slot.batch.images.data<float>() + i * floats);
    if (slot.batch.masks.defined())
      pipeline_.mask(mask, of_picture, slot.batch.masks.data<int64_t>() + i * pixels);
    slot.batch.labels.data<int64_t>()[i] = split_->label(index);
  }
}

// Writes the token map and view of image i of the batch; `map` leads from its pixels back to those of
// `whole`.
void Loader::label_tokens(const Batch& batch, int64_t i, const Affine& map, const Image& whole) const {
  token_labels_->read(batch.indices[static_cast<size_t>(i)],
                      batch.token_maps.data<float>() + i * token_labels_->shape().elements());
  const auto down = static_cast<double>(pipeline_.image_shape()[1]),
             across = static_cast<double>(pipeline_.image_shape()[2]);
  const std::array<double, 6> view{map.a * across / whole.width, map.b * down / whole.width,
                                   map.c / whole.width,          map.d * across / whole.height,
                                   map.e * down / whole.height,  map.f / whole.height};
  std::copy(view.begin(), view.end(), batch.token_views.data<double>() + 6 * i);
}

void Loader::call_workers() {
  const int most = threads();
  for (int now = workers_; now < most && next_piece_ < open_pieces_;)
    if (workers_.compare_exchange_weak(now, now + 1))
      arena_.execute([this] { tasks_.run([this]() TESSERA_TASK { work(); }); });
}

// The task ends after one piece, so that its thread can take more urgent work in between.
void Loader::work() {
  const int64_t piece = claim(open_pieces_);
  if (piece >= 0) make(piece);
  made_.release();
  --workers_;
  call_workers();
}

// Makes the pieces that are left, then waits for those that workers are making.
void Loader::finish(int64_t step) {
  for (int64_t piece; (piece = claim((step + 1) * pieces_per_batch_)) >= 0;) make(piece);
  const std::atomic<int64_t>& left = slot(step).pieces_left;
  for (int64_t now; (now = left) > 0;) left.wait(now);
}

Mix Loader::draw_mix_of(int64_t step, int64_t images) const {
  Random random =
      Random(seed_).split(static_cast<uint64_t>(epoch_)).split(mix_tag + static_cast<uint64_t>(step));
  return draw_mix(mix_, images, pipeline_.image_shape()[1], pipeline_.image_shape()[2], random);
}

void Loader::mix(Batch& batch, int64_t step) {
  const Shape& shape = batch.images.shape();
  const Mix mix = draw_mix_of(step, shape[0]);
  if (mix.partners.empty()) return;
  if (!mixed_images_.defined() || mixed_images_.shared())
    mixed_images_ = Tensor::empty(pipeline_.image_shape().inserted(0, sampler_.batch()));
  if (!mixed_labels_.defined() || mixed_labels_.shared())
    mixed_labels_ = Tensor::empty({sampler_.batch()}, DType::i64);
  Tensor images = mixed_images_.rows(0, shape[0]), labels = mixed_labels_.rows(0, shape[0]);
  mix_images(batch.images, mix, images);
  partner_labels(batch.labels, mix, labels);
  batch.images = images;
  batch.other_labels = labels;
  batch.lam = mix.lam;
}

const Batch* Loader::next() {
  if (step_ >= batches()) return nullptr;
  const Stopwatch waiting(wait_seconds_);
  if (delivered_) {
    slot(step_ - 1).release();
    open(step_ - 1 + std::ssize(slots_));
  }
  finish(step_);
  Slot& made = slot(step_);
  delivered_ = true;
  ++step_;
  if (made.error) std::rethrow_exception(made.error);
  if (device_)
    device_->deliver(made.number, std::ssize(made.batch.indices), made.mix, made.batch);
  else if (mix_.any())
    mix(made.batch, step_ - 1);
  return &made.batch;
}

}  // namespace tessera
