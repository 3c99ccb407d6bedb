#include "apps/reporting/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/autograd/observe.h"
#include "engine/core/error.h"
#include "models/parts/attention.h"
#include "models/parts/decay_watch.h"

namespace tessera {

namespace {

// sum_j p_j log(N p_j) of each row of p [..., N] f64.
std::vector<double> row_divergences(const Tensor& p) {
  const int64_t keys = p.dim(p.rank() - 1), rows = p.elements() / keys;
  std::vector<double> all(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const double* row = p.data<double>() + i * keys;
    for (int64_t j = 0; j < keys; ++j)
      if (row[j] > 0) all[static_cast<size_t>(i)] += row[j] * std::log(row[j] * static_cast<double>(keys));
  }
  return all;
}

// The divergence of the product of attention along columns c [B w, H, h, h] and, before it, along rows, whose
// divergences are `of_rows` [B h, H, w]:
//
//   KL(y0, x0) = KL(c(y0, .)) + sum_y c(y0, y) KL(row y, x0)                                          [B w,
//   H, h]
std::vector<double> product_divergences(const Tensor& c, const std::vector<double>& of_rows, int64_t w) {
  std::vector<double> all = row_divergences(c);
  const int64_t heads = c.dim(1), h = c.dim(2);
  for (int64_t s = 0; s < c.dim(0); ++s)
    for (int64_t n = 0; n < heads; ++n)
      for (int64_t i = 0; i < h; ++i) {
        const int64_t at = (s * heads + n) * h + i, image = s / w, x = s % w;
        for (int64_t y = 0; y < h; ++y)
          all[static_cast<size_t>(at)] += c.data<double>()[at * h + y] *
                                          of_rows[static_cast<size_t>(((image * h + y) * heads + n) * w + x)];
      }
  return all;
}

// The channels of a head's keys, from the projection that makes them; 0 where no such parameter is known.
int64_t width_of_keys(const Parameters& parameters, const std::string& path, int64_t heads) {
  if (const Tensor* qkv = parameters.find(path + ".qkv.weight")) return qkv->dim(0) / (3 * heads);
  if (const Tensor* q = parameters.find(path + ".q.weight")) return q->dim(0) / heads;
  return 0;
}

// The config's temperature in units of sqrt(d).
double fixed_temperature(const Json& config) {
  const auto attention = config.find("attention");
  if (attention == config.end() || !attention->is_object()) return 1;
  const auto found = attention->find("temperature");
  return found != attention->end() && found->is_number() ? found->get<double>() : 1;
}

Tensor host_f64(const Tensor& x) { return x.to(Device::cpu).to(DType::f64); }

// The decay [.., H, N, N] of one query with the tokens of the grid. [H, h, w]
Tensor decay_around(const Tensor& matrix, const TokenLayout& places, Place query) {
  const auto [h, w] = places.grid;
  const int64_t heads = matrix.dim(matrix.rank() - 3), tokens = matrix.dim(matrix.rank() - 1);
  const Grid at = token_at(query, places.grid);
  const int64_t row = places.prefix + at.height * w + at.width;
  const Tensor m = host_f64(matrix), around = Tensor::empty({heads, h, w}, DType::f64);
  for (int64_t n = 0; n < heads; ++n)
    std::copy_n(m.data<double>() + (n * tokens + row) * tokens + places.prefix, h * w,
                around.data<double>() + n * h * w);
  return around;
}

// A prior's table [T, H] over the offsets of a grid. [H, 2h-1, 2w-1]
Tensor by_offset(const Tensor& table, Grid grid) {
  const int64_t heads = table.dim(1), rows = 2 * grid.height - 1, columns = 2 * grid.width - 1;
  check(table.dim(0) == rows * columns, "diagnose: a prior of ", table.dim(0), " offsets on a grid of ",
        grid.height, " x ", grid.width);
  const Tensor from = host_f64(table), omega = Tensor::empty({heads, rows, columns}, DType::f64);
  for (int64_t n = 0; n < heads; ++n)
    for (int64_t i = 0; i < rows * columns; ++i)
      omega.data<double>()[n * rows * columns + i] = from.data<double>()[i * heads + n];
  return omega;
}

Json nested(const Tensor& x) {  // [H, rows, columns]
  Json all = Json::array();
  const double* value = x.data<double>();
  for (int64_t n = 0; n < x.dim(0); ++n) {
    Json matrix = Json::array();
    for (int64_t i = 0; i < x.dim(1); ++i, value += x.dim(2))
      matrix.push_back(std::vector<double>(value, value + x.dim(2)));
    all.push_back(std::move(matrix));
  }
  return all;
}

}  // namespace

Grid token_at(Place place, Grid grid) {
  const auto index = [](double share, int64_t count) {
    return std::clamp(static_cast<int64_t>(share * static_cast<double>(count)), int64_t{0}, count - 1);
  };
  return {index(place.row, grid.height), index(place.column, grid.width)};
}

AttentionDiagnosis::Sums AttentionDiagnosis::new_layer(const std::string& path, Grid grid,
                                                       int64_t heads) const {
  Sums sums;
  LayerDiagnosis& layer = sums.layer;
  layer.path = path;
  layer.grid = grid;
  layer.heads = heads;
  sums.divergence.resize(static_cast<size_t>(heads));
  layer.sqrt_width = std::sqrt(static_cast<double>(width_of_keys(model_.parameters, path, heads)));
  const Tensor* scale = model_.parameters.find(path + ".scale");
  layer.learned = scale && scale->elements() == heads;
  if (layer.learned)
    for (const double s : scale->values()) layer.temperature.push_back(1 / s);
  else if (layer.sqrt_width > 0)
    layer.temperature.assign(static_cast<size_t>(heads), fixed_temperature(model_.config) * layer.sqrt_width);
  return sums;
}

void AttentionDiagnosis::add(const Tensor& images) {
  struct Rows {
    std::string path;
    Grid grid;
    int64_t heads, queries;
    std::vector<double> divergences;  // [sequences, heads, queries]
    bool decomposed = false;
  };
  std::vector<Rows> layers;
  const PlainAttention plain;
  const Observer observer([&](const ForwardEvent& event) {
    const TokenLayout* places = TokenLayoutScope::layout();
    if (event.op.name != "softmax" || !places || event.output.rank() != 4) return;
    const Tensor p = host_f64(event.output);
    if (!places->columns) {
      layers.push_back({ModuleScope::path(), places->grid, p.dim(1), p.dim(2), row_divergences(p)});
      return;
    }
    layers.back().divergences = product_divergences(p, layers.back().divergences, places->grid.width);
    layers.back().queries = p.dim(2);
    layers.back().decomposed = true;
  });
  Pass pass;
  model_.logits(images, pass);
  check(!layers.empty(), "diagnose: a model of arch '", model_.config.at("arch").get<std::string>(),
        "' has no attention");
  if (sums_.empty())
    for (const Rows& rows : layers) sums_.push_back(new_layer(rows.path, rows.grid, rows.heads));
  for (size_t l = 0; l < layers.size(); ++l) {
    const Rows& rows = layers[l];
    sums_[l].layer.decomposed = rows.decomposed;
    for (int64_t i = 0; i < std::ssize(rows.divergences); ++i)
      sums_[l].divergence[static_cast<size_t>(i / rows.queries % rows.heads)] +=
          rows.divergences[static_cast<size_t>(i)];
    sums_[l].rows += std::ssize(rows.divergences) / rows.heads;
  }
}

void AttentionDiagnosis::look_at(const Tensor& image, Place query) {
  std::map<std::string, Tensor> tables;  // of priors, by path
  Grid first;                            // of the first attention
  const DecayWatch watch([&](const Decay& decay, const Tensor& x) {
    const TokenLayout* places = TokenLayoutScope::layout();
    if (!places || places->columns) return;  // rows and columns of one layer have the same decay
    decays_[ModuleScope::path()] =
        decay_around(decay.matrix(x, places->grid, places->prefix), *places, query);
  });
  std::map<std::string, Grid> grids;  // of attention, by path
  const PlainAttention plain;
  const Observer observer([&](const ForwardEvent& event) {
    const std::string path = ModuleScope::path();
    if (path.ends_with("prior.fc2"))
      tables[path.substr(0, path.size() - std::string_view(".fc2").size())] = event.output;
    const TokenLayout* places = TokenLayoutScope::layout();
    if (event.op.name != "softmax" || !places) return;
    if (grids.empty()) first = places->grid;
    grids[path] = places->grid;
  });
  Pass pass;
  model_.logits(image, pass);
  priors_.clear();
  for (const auto& [path, table] : tables) {
    const auto owner = grids.find(path.substr(0, path.rfind('.') == std::string::npos ? 0 : path.rfind('.')));
    priors_.push_back({path, by_offset(table, owner != grids.end() ? owner->second : first)});
  }
}

std::vector<LayerDiagnosis> AttentionDiagnosis::layers() const {
  std::vector<LayerDiagnosis> all;
  for (const Sums& sums : sums_) {
    LayerDiagnosis layer = sums.layer;
    for (const double sum : sums.divergence) layer.divergence.push_back(sum / static_cast<double>(sums.rows));
    if (const auto decay = decays_.find(layer.path); decay != decays_.end()) layer.decay = decay->second;
    all.push_back(std::move(layer));
  }
  return all;
}

Json to_json(const AttentionDiagnosis& diagnosis) {
  Json layers = Json::array(), priors = Json::array();
  for (const LayerDiagnosis& layer : diagnosis.layers()) {
    Json row{{"layer", layers.size() + 1},
             {"path", layer.path},
             {"grid", {layer.grid.height, layer.grid.width}},
             {"learned", layer.learned},
             {"decomposed", layer.decomposed},
             {"temperature", layer.temperature},
             {"divergence", layer.divergence}};
    row["sqrt_d"] = layer.sqrt_width > 0 ? Json(layer.sqrt_width) : Json();
    if (layer.decay.defined()) row["decay"] = nested(layer.decay);
    layers.push_back(std::move(row));
  }
  for (const PriorDiagnosis& prior : diagnosis.priors())
    priors.push_back({{"path", prior.path}, {"omega", nested(prior.omega)}});
  return {{"layers", layers}, {"priors", priors}};
}

}  // namespace tessera
