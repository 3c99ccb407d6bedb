#include "models/parts/token_labels.h"

#include <algorithm>
#include <cmath>

#include "engine/core/parallel.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

// Classes [B] as one-hot rows [B, K], in the type and on the device of `logits` [B, K].
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

// A teacher's map: logits and their classes. [T, h, w]
struct ScoreMap {
  std::vector<double> scores;
  std::vector<int64_t> classes;
  int64_t h, w;
};

// Reads a map in the cells of a grid over a view. One reader serves many cells and reuses its buffers.
class CellReader {
 public:
  CellReader(const ScoreMap& map, const View& view, Grid grid, int64_t classes)
      : map_(map), view_(at_least_one_place(map, view)), grid_(grid), sums_(static_cast<size_t>(classes)) {
    const auto count = [](double length, int64_t cells) {
      return static_cast<int64_t>(std::ceil(length / static_cast<double>(cells)));
    };
    columns_ = count(length(view_.a, view_.d), grid.width);
    rows_ = count(length(view_.b, view_.e), grid.height);
  }

  // Writes the softmax over the classes of the cell's mean scores to to[0 .. K).
  template <class T> void softmax_at(int64_t row, int64_t column, double smoothing, T* to) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    seen_.clear();
    for (int64_t s = 0; s < rows_; ++s)
      for (int64_t t = 0; t < columns_; ++t)
        sample(middle(column, t, columns_, grid_.width), middle(row, s, rows_, grid_.height));
    std::sort(seen_.begin(), seen_.end());
    seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
    const double even = smoothing / static_cast<double>(sums_.size());
    const double most = *std::max_element(sums_.begin(), sums_.end());
    const size_t others = sums_.size() - seen_.size();
    const double unseen = others > 0 ? std::exp(-most) : 0;
    double sum = unseen * static_cast<double>(others);
    for (const size_t k : seen_) sum += sums_[k] = std::exp(sums_[k] - most);
    std::fill(to, to + sums_.size(), static_cast<T>((1 - smoothing) * unseen / sum + even));
    for (const size_t k : seen_) to[k] = static_cast<T>((1 - smoothing) * sums_[k] / sum + even);
  }

 private:
  double length(double along_width, double along_height) const {
    return std::hypot(along_width * static_cast<double>(map_.w), along_height * static_cast<double>(map_.h));
  }

  // A crop is a part of its image, or a little more; each place costs a sample.
  static constexpr double most_places = 4096;

  // RoIAlign widens a region that is smaller than one place of the map.
  static View at_least_one_place(const ScoreMap& map, View view) {
    const auto w = static_cast<double>(map.w), h = static_cast<double>(map.h);
    const double width = std::hypot(view.a * w, view.d * h), height = std::hypot(view.b * w, view.e * h);
    check(width > 0 && height > 0, "token targets: a view without area");
    check(width <= most_places && height <= most_places && std::isfinite(view.c) && std::isfinite(view.f),
          "token targets: a view of ", width, " x ", height, " places of the map about (", view.c, ", ",
          view.f, "); at most ", most_places, " a side are read");
    const double across = std::max(1.0, 1 / width), down = std::max(1.0, 1 / height);
    return {view.a * across, view.b * down, view.c, view.d * across, view.e * down, view.f};
  }

  // The place of sample i of `samples` in a cell, as a fraction of the view.
  static double middle(int64_t cell, int64_t i, int64_t samples, int64_t cells) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
    return (static_cast<double>(cell) + part) / static_cast<double>(cells);
  }

  // Adds the scores at a point of the view, interpolated bilinearly, with the weight of one sample.
  void sample(double x, double y) {
    const auto last = [](int64_t n) { return static_cast<double>(n - 1); };
    const double share = 1 / static_cast<double>(rows_ * columns_);
    const double u = std::clamp((view_.a * x + view_.b * y + view_.c) * static_cast<double>(map_.w) - 0.5,
                                0.0, last(map_.w)),
                 v = std::clamp((view_.d * x + view_.e * y + view_.f) * static_cast<double>(map_.h) - 0.5,
                                0.0, last(map_.h));
    const auto left = static_cast<int64_t>(u), top = static_cast<int64_t>(v);
    const double right_share = u - static_cast<double>(left), bottom_share = v - static_cast<double>(top);
    add(top, left, share * (1 - bottom_share) * (1 - right_share));
    add(top, std::min(left + 1, map_.w - 1), share * (1 - bottom_share) * right_share);
    add(std::min(top + 1, map_.h - 1), left, share * bottom_share * (1 - right_share));
    add(std::min(top + 1, map_.h - 1), std::min(left + 1, map_.w - 1), share * bottom_share * right_share);
  }

  void add(int64_t row, int64_t column, double weight) {
    const auto places = static_cast<size_t>(map_.h * map_.w);
    for (auto at = static_cast<size_t>(row * map_.w + column); at < map_.scores.size(); at += places) {
      const auto k = static_cast<size_t>(map_.classes[at]);
      sums_[k] += weight * map_.scores[at];
      seen_.push_back(k);
    }
  }

  const ScoreMap& map_;
  View view_;
  Grid grid_;
  int64_t rows_, columns_;    // samples in a cell
  std::vector<double> sums_;  // [K]
  std::vector<size_t> seen_;  // classes with scores in the cell
};

// Writes the image's target [K] and the patches' [N, K].
template <class T>
void write_targets(const ScoreMap& map, const View& view, Grid grid, int64_t classes, double smoothing,
                   T* image, T* patches) {
  CellReader(map, view, {1, 1}, classes).softmax_at(0, 0, smoothing, image);
  CellReader cells(map, view, grid, classes);
  for (int64_t i = 0; i < grid.height * grid.width; ++i)
    cells.softmax_at(i / grid.width, i % grid.width, smoothing, patches + i * classes);
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

Tensor mask_of(Grid grid, const Box& box) {
  const auto [h, w] = grid;
  check(0 <= box.top && box.top <= box.bottom && box.bottom <= h && 0 <= box.left && box.left <= box.right &&
            box.right <= w,
        "mix-token: rows ", box.top, " to ", box.bottom, " and columns ", box.left, " to ", box.right,
        " are no box of ", h, " x ", w, " tokens");
  const Tensor inside = Tensor::zeros({h * w, 1});
  for (int64_t y = box.top; y < box.bottom; ++y)
    for (int64_t x = box.left; x < box.right; ++x) inside.data<float>()[y * w + x] = 1;
  return inside;
}

Tensor swap_box(const Tensor& tokens, const Tensor& inside) {
  check(inside.shape() == Shape{tokens.dim(1), 1}, "mix-token: tokens ", tokens.shape(), " and the mask ",
        inside.shape(), " of a box; [N, 1] is wanted");
  const Tensor outside = add_scalar(-inside, 1);
  return add(multiply(tokens, outside), multiply(flip(tokens, 0), inside));
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

Tensor token_label_loss(const Tensor& logits, const Tensor& aux, const TokenTargets& targets,
                        const Tensor& inside, const LossOptions& options) {
  constexpr double aux_weight = 0.5;
  Tensor images = targets.images;
  if (inside.defined()) {
    const Tensor share = mean(inside);
    images = add(multiply(images, add_scalar(-share, 1)), multiply(flip(images, 0), share));
  }
  LossOptions of_patches = options;
  of_patches.rows *= aux.dim(1);
  return add(cross_entropy_soft(logits, images, options),
             scale(cross_entropy_soft(aux, targets.patches, of_patches), aux_weight));
}

TokenTargets token_targets(const Tensor& values, const Tensor& indices, const View& view, Grid grid,
                           int64_t classes, double smoothing) {
  check_map(values, indices, classes);
  const ScoreMap map{values.values(), indices.integers(), values.dim(1), values.dim(2)};
  const TokenTargets targets{Tensor::empty({classes}, DType::f64),
                             Tensor::empty({grid.height * grid.width, classes}, DType::f64)};
  write_targets(map, view, grid, classes, smoothing, targets.images.data<double>(),
                targets.patches.data<double>());
  return {targets.images.to(values.dtype()), targets.patches.to(values.dtype())};
}

TokenTargets token_targets(const Tensor& maps, const Tensor& views, Grid grid, int64_t classes) {
  check(maps.rank() == 5 && maps.dim(1) == 2 && maps.dtype() == DType::f32 &&
            views.shape() == Shape{maps.dim(0), 6} && views.dtype() == DType::f64,
        "token targets: maps ", maps.dtype(), " ", maps.shape(), " and views ", views.dtype(), " ",
        views.shape(), "; f32 [B, 2, T, h, w] and f64 [B, 6] are wanted");
  const int64_t images = maps.dim(0), patches = grid.height * grid.width,
                numbers = 2 * maps.dim(2) * maps.dim(3) * maps.dim(4);
  const TokenTargets targets{Tensor::empty({images, classes}), Tensor::empty({images, patches, classes})};
  parallel_for(images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const float *scores = maps.data<float>() + b * numbers, *kinds = scores + numbers / 2;
      const ScoreMap map{{scores, kinds}, {kinds, kinds + numbers / 2}, maps.dim(3), maps.dim(4)};
      for (const int64_t k : map.classes)
        check(k >= 0 && k < classes, "token targets: class ", k, ", the classes are 0 to ", classes - 1);
      const double* v = views.data<double>() + 6 * b;
      write_targets(map, {v[0], v[1], v[2], v[3], v[4], v[5]}, grid, classes, 0,
                    targets.images.data<float>() + b * classes,
                    targets.patches.data<float>() + b * patches * classes);
    }
  });
  return targets;
}

}  // namespace tessera
