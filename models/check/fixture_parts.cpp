#include "models/check/fixture_parts.h"

#include <cmath>

#include "engine/ops/rotary.h"
#include "engine/ops/shape.h"
#include "models/parts/decay.h"
#include "models/parts/positions.h"
#include "models/parts/prior.h"
#include "models/parts/token_labels.h"
#include "models/segment_inference.h"

namespace tessera {

namespace {

Grid read_grid(Fields& fields, const char* key = "grid") {
  const auto sizes = fields.get<std::vector<int64_t>>(key, Range::at_least(1));
  if (sizes.size() != 2) fields.fail_at(key, "has ", sizes.size(), " sizes, [rows, columns] is wanted");
  return {sizes[0], sizes[1]};
}

void build_prior(Fields& fields, const Scope& scope, Part& part) {
  const Grid grid = read_grid(fields);
  const auto heads = fields.get<int64_t>("heads", Range::at_least(1));
  const auto hidden = fields.get<int64_t>("hidden", Range::at_least(1));
  const SpatialPrior prior(scope, heads, hidden, grid, fields.get("has_cls", false) ? 1 : 0);
  part.weighted_output = "omega";
  part.outputs = [prior](const TensorMap&) -> TensorMap { return {{"omega", prior()}}; };
}

// The decay within every row, [B, h, H, w, w], or every column, [B, w, H, h, h]. A decay of the distance
// alone is the same everywhere and has neither the batch axis nor the lines'.
Tensor lines(const Decay& decay, const Tensor& tokens, Grid grid, int64_t prefix, bool rows) {
  const auto [h, w] = grid;
  const int64_t count = rows ? h : w, length = rows ? w : h;
  if (decay.options.kind != DecayOptions::Kind::content) return decay.matrix(tokens, {1, length}, 0);
  const int64_t images = tokens.dim(0), width = tokens.dim(2);
  Tensor x = slice(tokens, 1, prefix, h * w).reshape({images, h, w, width});
  if (!rows) x = permute(x, {0, 2, 1, 3});
  const Tensor m = decay.matrix(x.reshape({images * count, length, width}), {1, length}, 0);
  return m.reshape({images, count, m.dim(1), length, length});
}

void build_decay(Fields& fields, const Scope& scope, Part& part) {
  const Grid grid = read_grid(fields);
  const auto dim = fields.get<int64_t>("dim", Range::at_least(1));
  const auto heads = fields.get<int64_t>("heads", Range::at_least(1));
  const auto prefix = fields.get<int64_t>("prefix", 0, Range::at_least(0));
  const std::string form = fields.choice("form", {"forward", "rows", "columns"}, "forward");
  fields.get<int64_t>("batch", 2);  // describes the file's input
  const Decay decay(scope, read_decay(fields.object("decay")), dim, heads);
  if (decay.options.kind == DecayOptions::Kind::content) part.weighted_output = "output";
  part.outputs = [=](const TensorMap& inputs) -> TensorMap {
    const Tensor x = inputs.contains("input") ? inputs.at("input") : Tensor();
    if (form != "forward") return {{"output", lines(decay, x, grid, prefix, form == "rows")}};
    return {{"output", decay.matrix(x, grid, prefix)}};
  };
}

void build_rope(Fields& fields, Part& part) {
  const Grid grid = read_grid(fields);
  fields.get<int64_t>("heads", Range::at_least(1));  // describes the file's input
  fields.get<int64_t>("batch", 2);
  const auto head_dim = fields.get<int64_t>("head_dim", Range::at_least(1));
  const Tensor angles = raster_angles(grid.height * grid.width, head_dim);
  part.weighted_output = "output";
  part.outputs = [=](const TensorMap& inputs) -> TensorMap {
    const Tensor& x = entry(inputs, "input");
    return {{"output", rotary(x, turns_of(angles, x.dtype(), x.device()))}};
  };
}

void build_resize(Fields& fields, Part& part) {
  const Grid from = read_grid(fields, "old"), to = read_grid(fields, "new");
  const int64_t prefix = fields.get("has_cls", false) ? 1 : 0;
  fields.get<int64_t>("dim", Range::at_least(1));  // describes the file's input
  part.weighted_output = "output";
  part.outputs = [=](const TensorMap& inputs) -> TensorMap {
    return {{"output", resize_pos_embed(entry(inputs, "input"), from, to, prefix)}};
  };
}

void build_scores(Fields& fields, Part& part) {
  const auto classes = fields.get<int64_t>("classes", Range::at_least(1));
  read_grid(fields, "size");
  fields.get<int64_t>("batch", 2);
  part.outputs = [=](const TensorMap& inputs) -> TensorMap {
    SegmentationCounts counts(classes);
    counts.add(entry(inputs, "predicted"), entry(inputs, "target"));
    SegmentationCounts::Scores scores = counts.scores();
    for (double& iou : scores.iou)
      if (std::isnan(iou)) iou = -1;
    return {{"pixel_accuracy", Tensor::from({scores.pixel_accuracy}, {}, DType::f64)},
            {"mean_iou", Tensor::from({scores.mean_iou}, {}, DType::f64)},
            {"iou", Tensor::from(scores.iou, {classes}, DType::f64)}};
  };
}

void build_token_targets(Fields& fields, Part& part) {
  const auto classes = fields.get<int64_t>("classes", Range::at_least(1));
  const Grid grid = read_grid(fields);
  read_grid(fields, "map");
  const double smoothing = fields.get("smoothing", 0.1, Range::between(0, 1));
  part.outputs = [=](const TensorMap& inputs) -> TensorMap {
    const std::vector<double> crop = entry(inputs, "crop").values();
    check(crop.size() == 4, "part: crop has ", crop.size(), " numbers, top, left, bottom, right are wanted");
    const TokenTargets targets =
        token_targets(entry(inputs, "values"), entry(inputs, "indices"),
                      View{.a = crop[3] - crop[1], .c = crop[1], .e = crop[2] - crop[0], .f = crop[0]}, grid,
                      classes, smoothing);
    return {{"target", targets.images}, {"aux_target", targets.patches}};
  };
}

}  // namespace

Part build_part(const Json& config, DType dtype, Device device) {
  Fields fields(config, "part");
  const std::string name = fields.choice(
      "part", {"spatial_prior", "decay", "rope", "resize_pos_embed", "segmentation_scores", "token_targets"});
  Part part;
  const Scope scope(part.parameters, 0, dtype, device);
  if (name == "spatial_prior")
    build_prior(fields, scope, part);
  else if (name == "rope")
    build_rope(fields, part);
  else if (name == "decay")
    build_decay(fields, scope, part);
  else if (name == "resize_pos_embed")
    build_resize(fields, part);
  else if (name == "segmentation_scores")
    build_scores(fields, part);
  else
    build_token_targets(fields, part);
  fields.done();
  return part;
}

}  // namespace tessera
