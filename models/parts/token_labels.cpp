#include "models/parts/token_labels.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

// [B] classes -> [B, K], as `logits` [B, K] in type and device.
Tensor one_hot(const Tensor& labels, const Tensor& logits) {
  const int64_t images = logits.dim(0), classes = logits.dim(1);
  check(labels.dtype() == DType::i64 && labels.shape() == Shape{images}, "token labels: logits ",
        logits.shape(), " take a target i64 [", images, "] or soft of their shape, not ", labels.dtype(), " ",
        labels.shape());
  std::vector<double> rows(static_cast<size_t>(images * classes), 0.0);
  const std::vector<int64_t> of = labels.integers();
  for (size_t b = 0; b < of.size(); ++b) {
    check(of[b] >= 0 && of[b] < classes, "token labels: label ", of[b], " of image ", b,
          ", the classes are 0 to ", classes - 1);
    rows[b * static_cast<size_t>(classes) + static_cast<size_t>(of[b])] = 1;
  }
  return Tensor::from(rows, {images, classes}, logits.dtype()).to(logits.device());
}

Tensor mixed(const Tensor& a, const Tensor& b, double lam) { return add(scale(a, lam), scale(b, 1 - lam)); }

// Row k: the share of each of `size` entries in cell k, of `cells` between the fractions start and stop.
std::vector<std::vector<double>> shares(double start, double stop, int64_t size, int64_t cells) {
  const double first = start * static_cast<double>(size) - 0.5;
  const double length = std::max(stop * static_cast<double>(size) - 0.5 - first, 1.0);
  const double cell_length = length / static_cast<double>(cells);
  const auto samples = static_cast<int64_t>(std::ceil(cell_length));
  std::vector<std::vector<double>> rows(static_cast<size_t>(cells),
                                        std::vector<double>(static_cast<size_t>(size), 0.0));
  for (size_t cell = 0; cell < rows.size(); ++cell)
    for (int64_t s = 0; s < samples; ++s) {
      const double part = (static_cast<double>(s) + 0.5) / static_cast<double>(samples);
      const double at = std::clamp(first + cell_length * (static_cast<double>(cell) + part), 0.0,
                                   static_cast<double>(size - 1));
      const auto low = static_cast<size_t>(at), high = std::min(low + 1, static_cast<size_t>(size - 1));
      const double rest = at - static_cast<double>(low), one = 1 / static_cast<double>(samples);
      rows[cell][low] += (1 - rest) * one;
      rows[cell][high] += rest * one;
    }
  return rows;
}

// The map read inside the crop, [grid, K].
Tensor read_scores(const Tensor& values, const Tensor& indices, const std::array<double, 4>& crop, Grid grid,
                   int64_t classes) {
  const int64_t h = values.dim(1), w = values.dim(2);
  const auto rows = shares(crop[0], crop[2], h, grid.height),
             columns = shares(crop[1], crop[3], w, grid.width);
  const std::vector<double> score = values.values();
  const std::vector<int64_t> of = indices.integers();
  std::vector<double> cells(static_cast<size_t>(grid.height * grid.width * classes), 0.0);
  for (int64_t i = 0; i < values.elements(); ++i) {
    const auto y = static_cast<size_t>(i / w % h), x = static_cast<size_t>(i % w);
    for (size_t a = 0; a < rows.size(); ++a)
      for (size_t b = 0; b < columns.size(); ++b)
        cells[(a * columns.size() + b) * static_cast<size_t>(classes) +
              static_cast<size_t>(of[static_cast<size_t>(i)])] +=
            rows[a][y] * columns[b][x] * score[static_cast<size_t>(i)];
  }
  return Tensor::from(cells, {grid.height * grid.width, classes}, DType::f64);
}

void check_map(const Tensor& values, const Tensor& indices, int64_t classes) {
  check(values.rank() == 3 && values.elements() > 0 && indices.shape() == values.shape() &&
            indices.dtype() == DType::i64,
        "token targets: values ", values.shape(), " and indices ", indices.dtype(), " ", indices.shape(),
        "; [T, h, w] both are wanted, the indices i64");
  for (const int64_t i : indices.integers())
    check(i >= 0 && i < classes, "token targets: class ", i, ", the classes are 0 to ", classes - 1);
}

}  // namespace

Box draw_box(Grid grid, Random& random) {
  const auto [h, w] = grid;
  const double side = std::sqrt(1 - random.uniform());
  const auto half = [side](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * side) / 2; };
  const int64_t y = random.below(h), x = random.below(w);
  return {std::max<int64_t>(y - half(h), 0), std::min(y + half(h), h), std::max<int64_t>(x - half(w), 0),
          std::min(x + half(w), w)};
}

Box to_box(const Tensor& sides) {
  check(sides.dtype() == DType::i64 && sides.elements() == 4, "mix-token: a box is i64 [4], not ",
        sides.dtype(), " ", sides.shape());
  const std::vector<int64_t> at = sides.integers();
  return {at[0], at[1], at[2], at[3]};
}

Tensor swap_box(const Tensor& tokens, Grid grid, const Box& box) {
  const auto [h, w] = grid;
  check(0 <= box.top && box.top <= box.bottom && box.bottom <= h && 0 <= box.left && box.left <= box.right &&
            box.right <= w,
        "mix-token: rows ", box.top, " to ", box.bottom, " and columns ", box.left, " to ", box.right,
        " are no box of ", h, " x ", w, " tokens");
  const int64_t images = tokens.dim(0), count = tokens.dim(1);
  check(count == h * w, "mix-token: tokens ", tokens.shape(), " of a grid of ", h, " x ", w);
  std::vector<int64_t> from;
  for (int64_t b = 0; b < images; ++b)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t y = i / w, x = i % w;
      const bool inside = y >= box.top && y < box.bottom && x >= box.left && x < box.right;
      from.push_back((inside ? images - 1 - b : b) * count + i);
    }
  const Tensor index = Tensor::from(from, {images * count});
  return take(tokens.reshape({images * count, -1}), 0, index).reshape(tokens.shape());
}

TokenTargets targets_of(const TensorMap& inputs, const Tensor& logits, int64_t patches) {
  const Tensor& target = entry(inputs, "target");
  TokenTargets targets{is_float(target.dtype()) ? target : one_hot(target, logits), {}};
  if (inputs.contains("target_b"))
    targets.images =
        mixed(targets.images, one_hot(entry(inputs, "target_b"), logits), entry(inputs, "lam").item());
  const int64_t images = logits.dim(0), classes = logits.dim(1);
  targets.patches = inputs.contains("aux_target") ? entry(inputs, "aux_target")
                                                  : broadcast_to(targets.images.reshape({images, 1, classes}),
                                                                 {images, patches, classes});
  return targets;
}

Tensor token_label_loss(const Tensor& logits, const Tensor& aux, const TokenTargets& targets, Grid grid,
                        const std::optional<Box>& box, const LossOptions& options) {
  constexpr double aux_weight = 0.5;
  Tensor images = targets.images;
  if (box) {
    const int64_t area = (box->bottom - box->top) * (box->right - box->left);
    const double lam = 1 - static_cast<double>(area) / static_cast<double>(grid.height * grid.width);
    images = mixed(images, flip(images, 0), lam);
  }
  LossOptions of_patches = options;
  of_patches.rows *= aux.dim(1);
  return add(cross_entropy_soft(logits, images, options),
             scale(cross_entropy_soft(aux, targets.patches, of_patches), aux_weight));
}

TokenTargets token_targets(const Tensor& values, const Tensor& indices, const std::array<double, 4>& crop,
                           Grid grid, int64_t classes, double smoothing) {
  check_map(values, indices, classes);
  const auto smooth = [&](const Tensor& scores) {
    const double even = smoothing / static_cast<double>(classes);
    return add_scalar(scale(softmax(scores), 1 - smoothing), even).to(values.dtype());
  };
  return {smooth(read_scores(values, indices, crop, {1, 1}, classes)).reshape({classes}),
          smooth(read_scores(values, indices, crop, grid, classes))};
}

}  // namespace tessera
