#include "apps/reporting/attention_maps.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/autograd/observe.h"
#include "engine/core/error.h"
#include "engine/ops/matmul.h"
#include "models/parts/attention.h"

namespace tessera {

namespace {

int64_t count_of(Grid grid) { return grid.height * grid.width; }

// The token at each place of the sequences: transposed for columns, permuted for windows.
std::vector<int64_t> order_of(const TokenLayout& places) {
  std::vector<int64_t> order(static_cast<size_t>(count_of(places.grid)));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto [h, w] = places.grid;
  if (places.columns)
    for (int64_t i = 0; i < h * w; ++i) order[static_cast<size_t>(i)] = i % h * w + i / h;
  if (places.order) {
    const Tensor on_host = places.order->to(Device::cpu);
    std::copy_n(on_host.data<int64_t>(), order.size(), order.begin());
  }
  return order;
}

// One head of a part as a matrix over all tokens; pairs of different sequences get 0. f64 [rows, tokens]
Tensor spread_head(const AttentionLayer::Part& part, int64_t head, int64_t rows, int64_t tokens) {
  const Tensor& p = part.probabilities;
  const int64_t sequences = p.dim(0), heads = p.dim(1), queries = p.dim(2), keys = p.dim(3);
  Tensor all = Tensor::zeros({rows, tokens}, DType::f64);
  const int64_t prefix = part.places.prefix;
  const auto token = [&](int64_t sequence, int64_t place) {
    if (place < prefix) return place;
    return prefix + part.order[static_cast<size_t>(sequence * (keys - prefix) + place - prefix)];
  };
  const double* from = p.data<double>();
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = 0; j < keys; ++j)
        all.data<double>()[(rows == 1 ? 0 : token(s, i)) * tokens + token(s, j)] =
            from[((s * heads + head) * queries + i) * keys + j];
  return all;
}

// Resamples rows from the grid `from` to the grid `to`: each new token's row is the mean of the rows of the
// tokens that it covers. The class token's row stays, or is 0 where it is new. shares [prefix + h w, P]
Tensor resampled(const Tensor& shares, Grid from, int64_t prefix_from, Grid to, int64_t prefix_to) {
  const int64_t width = shares.dim(1);
  Tensor out = Tensor::zeros({prefix_to + count_of(to), width}, DType::f64);
  const double* x = shares.data<double>();
  double* y = out.data<double>();
  for (int64_t i = 0; i < std::min(prefix_from, prefix_to); ++i)
    std::copy_n(x + i * width, width, y + i * width);
  const auto range = [](int64_t place, int64_t all, int64_t old) {
    const int64_t first = place * old / all;
    return std::pair(first, std::max(first + 1, (place + 1) * old / all));
  };
  for (int64_t row = 0; row < to.height; ++row)
    for (int64_t column = 0; column < to.width; ++column) {
      const auto [top, bottom] = range(row, to.height, from.height);
      const auto [left, right] = range(column, to.width, from.width);
      double* sum = y + (prefix_to + row * to.width + column) * width;
      const double part = 1.0 / static_cast<double>((bottom - top) * (right - left));
      for (int64_t r = top; r < bottom; ++r)
        for (int64_t c = left; c < right; ++c)
          for (int64_t k = 0; k < width; ++k)
            sum[k] += part * x[(prefix_from + r * from.width + c) * width + k];
    }
  return out;
}

// (own + A shares) / 2.
Tensor mixed(const Tensor& attention, const Tensor& shares, const Tensor& own) {
  Tensor next = matmul(attention, shares);
  double* y = next.data<double>();
  const double* x = own.data<double>();
  for (int64_t i = 0; i < next.elements(); ++i) y[i] = 0.5 * (x[i] + y[i]);
  return next;
}

}  // namespace

AttentionLayer::Part::Part(const TokenLayout& its_places, const Tensor& p)
    : places(its_places), order(order_of(its_places)), probabilities(p.to(Device::cpu).to(DType::f64)) {
  places.order = nullptr;  // the pointer is valid only during the forward pass
}

AttentionLayer::AttentionLayer(std::string path, Part part) : path_(std::move(path)) {
  parts_.push_back(std::move(part));
}

bool AttentionLayer::class_token_only() const {
  const Tensor& p = parts_.front().probabilities;
  return parts_.size() == 1 && p.dim(0) == 1 && p.dim(2) == 1 && p.dim(3) == tokens() && tokens() > 1;
}

Tensor AttentionLayer::matrix(int64_t head) const {
  const int64_t rows = class_token_only() ? 1 : tokens();
  Tensor all = spread_head(parts_.front(), head, rows, tokens());
  for (size_t i = 1; i < parts_.size(); ++i) all = matmul(spread_head(parts_[i], head, rows, tokens()), all);
  return all;
}

Tensor AttentionLayer::mean_matrix() const {
  Tensor mean = matrix(0);
  double* sum = mean.data<double>();
  for (int64_t h = 1; h < heads(); ++h) {
    const Tensor other = matrix(h);
    for (int64_t i = 0; i < mean.elements(); ++i) sum[i] += other.data<double>()[i];
  }
  for (int64_t i = 0; i < mean.elements(); ++i) sum[i] /= static_cast<double>(heads());
  return mean;
}

HeatMap AttentionLayer::heat_of(const Tensor& matrix) const {
  const int64_t patches = count_of(grid());
  HeatMap heat{grid(), std::vector<double>(static_cast<size_t>(patches))};
  const bool has_class = class_token_only() || prefix() > 0;
  const int64_t rows = has_class ? 1 : matrix.dim(0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < patches; ++j)
      heat.values[static_cast<size_t>(j)] +=
          matrix.data<double>()[i * tokens() + prefix() + j] / static_cast<double>(rows);
  return heat;
}

AttentionRecord record_attention(const Model& model, const Tensor& image) {
  AttentionRecord record;
  const PlainAttention plain;
  const Observer observer([&](const ForwardEvent& event) {
    const TokenLayout* places = TokenLayoutScope::layout();
    if (event.op.name != "softmax" || !places || event.output.rank() != 4) return;
    AttentionLayer::Part part(*places, event.output);
    if (places->columns)
      record.layers.back().add(std::move(part));
    else
      record.layers.emplace_back(ModuleScope::path(), std::move(part));
  });
  Pass pass;
  record.logits = model.logits(image, pass);
  check(!record.layers.empty(), "overlay: a model of arch '", model.config.at("arch").get<std::string>(),
        "' has no attention to show");
  return record;
}

HeatMap attention_rollout(const std::vector<AttentionLayer>& layers) {
  Grid grid = layers.front().grid(), first = grid;
  int64_t prefix = layers.front().prefix();
  const int64_t patches = count_of(first);
  Tensor shares = Tensor::zeros({prefix + patches, patches}, DType::f64), of_class;
  for (int64_t i = 0; i < patches; ++i) shares.data<double>()[(prefix + i) * patches + i] = 1;
  for (const AttentionLayer& layer : layers) {
    const Tensor attention = layer.mean_matrix();
    if (layer.class_token_only()) {
      if (!of_class.defined()) of_class = Tensor::zeros({1, patches}, DType::f64);
      of_class = mixed(attention, shares, of_class);
      continue;
    }
    if (layer.grid().height != grid.height || layer.grid().width != grid.width || layer.prefix() != prefix)
      shares = resampled(shares, grid, prefix, layer.grid(), layer.prefix());
    grid = layer.grid();
    prefix = layer.prefix();
    shares = mixed(attention, shares, shares);
  }
  const Tensor rows = of_class.defined() ? of_class : prefix > 0 ? shares.rows(0, 1) : shares;
  HeatMap heat{first, std::vector<double>(static_cast<size_t>(patches))};
  for (int64_t i = 0; i < rows.dim(0); ++i)
    for (int64_t j = 0; j < patches; ++j)
      heat.values[static_cast<size_t>(j)] +=
          rows.data<double>()[i * patches + j] / static_cast<double>(rows.dim(0));
  return heat;
}

}  // namespace tessera
