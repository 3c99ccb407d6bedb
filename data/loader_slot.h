#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "data/loader.h"

namespace tessera {

// The memory of one of a Loader's batches, and how far the workers are with it.
struct Loader::Slot {
  explicit Slot(int64_t its_number) : number(its_number) {}

  int64_t number;                                         // index among the slots
  Tensor images, labels, masks, token_maps, token_views;  // memory for a full batch
  Batch batch;                                            // the first rows of those
  Mix mix;                                                // drawn ahead, for a GPU
  std::atomic<int64_t> pieces_left = 0;
  std::mutex failing;
  std::exception_ptr error;  // error of the lowest piece that failed
  int64_t failed_piece = -1;

  void release() {
    batch.images = batch.labels = batch.masks = batch.other_labels = batch.shares = batch.host_labels =
        Tensor();
    batch.token_maps = batch.token_views = Tensor();
    batch.lam = 1;
  }

  // The first `count` rows of `tensor`, which has the memory of a full batch. If the caller still holds rows
  // of it, a new tensor replaces it.
  static Tensor rows_of(Tensor& tensor, int64_t count, const Shape& full, DType dtype) {
    if (!tensor.defined() || tensor.shared()) tensor = Tensor::empty(full, dtype);
    return tensor.rows(0, count);
  }

  void make_room(int64_t count, int64_t full, const Shape& image_shape, bool with_masks,
                 const TokenLabels* token_labels) {
    release();
    batch.images = rows_of(images, count, image_shape.inserted(0, full), DType::f32);
    batch.labels = rows_of(labels, count, {full}, DType::i64);
    if (with_masks) batch.masks = rows_of(masks, count, {full, image_shape[1], image_shape[2]}, DType::i64);
    if (token_labels) {
      batch.token_maps = rows_of(token_maps, count, token_labels->shape().inserted(0, full), DType::f32);
      batch.token_views = rows_of(token_views, count, {full, 6}, DType::f64);
    }
  }

  void fail_at(int64_t piece) {
    const std::lock_guard lock(failing);
    if (failed_piece >= 0 && failed_piece < piece) return;
    failed_piece = piece;
    error = std::current_exception();
  }
};

}  // namespace tessera
