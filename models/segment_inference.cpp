#include "models/segment_inference.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/resample.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

// Pads an axis with `before` and `after` zeros.
Tensor pad(const Tensor& x, int axis, int64_t before, int64_t after) {
  const auto zeros = [&](int64_t n) { return Tensor::zeros(x.shape().with(axis, n), x.dtype(), x.device()); };
  std::vector<Tensor> parts{x};
  if (before > 0) parts.insert(parts.begin(), zeros(before));
  if (after > 0) parts.push_back(zeros(after));
  return parts.size() == 1 ? x : concat(parts, axis);
}

// The number of crops that cover each place of an axis.
Tensor coverage(const std::vector<int64_t>& starts, int64_t length, int64_t crop, const Tensor& like) {
  std::vector<double> count(static_cast<size_t>(length), 0.0);
  for (const int64_t start : starts)
    for (int64_t i = start; i < start + crop; ++i) ++count[static_cast<size_t>(i)];
  return Tensor::from(count, {length}, like.dtype()).to(like.device());
}

}  // namespace

std::vector<int64_t> crop_starts(int64_t length, int64_t crop, int64_t stride) {
  check(stride > 0 && crop > 0 && length >= crop, "slide: crops of ", crop, " every ", stride, " of ", length,
        " pixels; a positive stride and a crop that fits are wanted");
  check(stride <= crop, "slide: a stride of ", stride, " pixels from window to window leaves pixels between ",
        "windows of ", crop, " that none of them sees; a stride of at most ", crop, " is wanted");
  std::vector<int64_t> starts;
  for (int64_t i = 0; i <= (length - crop + stride - 1) / stride; ++i)
    starts.push_back(std::min(i * stride, length - crop));
  return starts;
}

Tensor slide(const CropSegmenter& segmenter, const Tensor& images, int64_t stride) {
  const NoRecording unrecorded;
  check(images.rank() == 4, "slide: images ", images.shape(), ", [B, C, H, W] are wanted");
  const int64_t crop = segmenter.crop, height = images.dim(2), width = images.dim(3);
  const Tensor padded =
      pad(pad(images, 2, 0, std::max<int64_t>(crop - height, 0)), 3, 0, std::max<int64_t>(crop - width, 0));
  const int64_t h = padded.dim(2), w = padded.dim(3);
  const std::vector<int64_t> rows = crop_starts(h, crop, stride), columns = crop_starts(w, crop, stride);
  Tensor total;
  for (const int64_t y : rows)
    for (const int64_t x : columns) {
      const Tensor logits = segmenter.logits(slice(slice(padded, 2, y, crop), 3, x, crop));
      const Tensor placed = pad(pad(logits, 2, y, h - y - crop), 3, x, w - x - crop);
      total = total.defined() ? add(total, placed) : placed;
    }
  const Tensor count =
      multiply(coverage(rows, h, crop, total).reshape({h, 1}), coverage(columns, w, crop, total));
  return slice(slice(divide(total, count), 2, 0, height), 3, 0, width);
}

Tensor segment_probabilities(const CropSegmenter& segmenter, const std::vector<Tensor>& scaled, bool flips,
                             int64_t height, int64_t width, int64_t stride) {
  check(!scaled.empty(), "segment: no images, at one scale at least they are wanted");
  const NoRecording unrecorded;
  Tensor total;
  double runs = 0;
  for (const Tensor& images : scaled)
    for (const bool turned : {false, true}) {
      if (turned && !flips) continue;
      const Tensor logits =
          permute(slide(segmenter, turned ? flip(images, 3) : images, stride), {0, 2, 3, 1});
      const Tensor sized =
          resample(logits, bilinear_taps(logits.dim(1), height), bilinear_taps(logits.dim(2), width));
      const Tensor p = permute(softmax(sized), {0, 3, 1, 2});
      total = total.defined() ? add(total, turned ? flip(p, 3) : p) : p;
      ++runs;
    }
  return scale(total, 1 / runs);
}

Tensor largest_class(const Tensor& scores) {
  check(scores.rank() == 4 && scores.dim(1) > 0, "segment: scores ", scores.shape(),
        ", [B, K, H, W] are wanted");
  const Tensor host = scores.to(Device::cpu).to(DType::f32);
  const int64_t classes = host.dim(1), pixels = host.dim(2) * host.dim(3);
  const Tensor best = Tensor::zeros({host.dim(0), host.dim(2), host.dim(3)}, DType::i64);
  for (int64_t b = 0; b < host.dim(0); ++b) {
    const float* of = host.data<float>() + b * classes * pixels;
    int64_t* to = best.data<int64_t>() + b * pixels;
    for (int64_t k = 1; k < classes; ++k)
      for (int64_t i = 0; i < pixels; ++i)
        if (of[k * pixels + i] > of[to[i] * pixels + i]) to[i] = k;
  }
  return best;
}

SegmentationCounts::SegmentationCounts(int64_t classes) : classes_(classes) {
  check(classes > 0, "segment: ", classes, " classes, at least one is wanted");
  pairs_.resize(static_cast<size_t>(classes * classes), 0);
}

void SegmentationCounts::add(const Tensor& predicted, const Tensor& target) {
  check(predicted.shape() == target.shape(), "segment: predicted ", predicted.shape(), " and target ",
        target.shape(), " differ");
  const std::vector<int64_t> guesses = predicted.integers(), truths = target.integers();
  const auto is_class = [this](int64_t k) { return k >= 0 && k < classes_; };
  for (size_t i = 0; i < truths.size(); ++i) {
    if (truths[i] == no_class) continue;
    check(is_class(truths[i]) && is_class(guesses[i]), "segment: pixel ", i, " is ", truths[i],
          " and predicted ", guesses[i], ", the classes are 0 to ", classes_ - 1);
    ++pairs_[static_cast<size_t>(truths[i] * classes_ + guesses[i])];
  }
}

SegmentationCounts::Scores SegmentationCounts::scores() const {
  const auto count = [this](int64_t truth, int64_t guess) {
    return static_cast<double>(pairs_[static_cast<size_t>(truth * classes_ + guess)]);
  };
  Scores scores{};
  double all = 0, right = 0, sum = 0, present = 0;
  for (int64_t k = 0; k < classes_; ++k) {
    double either = -count(k, k);
    for (int64_t other = 0; other < classes_; ++other) {
      either += count(k, other) + count(other, k);
      all += count(k, other);
    }
    right += count(k, k);
    scores.iou.push_back(count(k, k) / either);  // NaN (0 / 0) for a class without a pixel
    if (either == 0) continue;
    sum += scores.iou.back();
    ++present;
  }
  scores.pixel_accuracy = right / all;
  scores.mean_iou = sum / present;
  return scores;
}

}  // namespace tessera
