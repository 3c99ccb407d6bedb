#include "models/parts/fixture_parts.h"

#include <memory>

#include "engine/ops/shape.h"
#include "models/parts/decay.h"
#include "models/parts/prior.h"

namespace tessera {

namespace {

Grid read_grid(Fields& fields) {
  const auto sizes = fields.get<std::vector<int64_t>>("grid", Range::at_least(1));
  if (sizes.size() != 2) fields.fail_at("grid", "has ", sizes.size(), " sizes, [rows, columns] is wanted");
  return {sizes[0], sizes[1]};
}

void build_prior(Fields& fields, const Scope& scope, Part& part) {
  const Grid grid = read_grid(fields);
  const auto heads = fields.get<int64_t>("heads", Range::at_least(1));
  const auto hidden = fields.get<int64_t>("hidden", Range::at_least(1));
  const SpatialPrior prior(scope, heads, hidden, grid, fields.get("has_cls", false) ? 1 : 0);
  part.output_name = "omega";
  part.output = [prior](const Tensor&) { return prior(); };
}

// One matrix for every row, [B, h, H, w, w], or every column, [B, w, H, h, h]; without the batch and line
// axes where the decay is of the distance alone.
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
  fields.get<int64_t>("batch", 2);  // of the file's own input
  const Decay decay(scope, read_decay(fields.object("decay")), dim, heads);
  part.output_name = "output";
  part.output = [=](const Tensor& x) {
    return form == "forward" ? decay.matrix(x, grid, prefix) : lines(decay, x, grid, prefix, form == "rows");
  };
}

}  // namespace

Part build_part(const Json& config, DType dtype) {
  Fields fields(config, "part");
  const std::string name = fields.choice("part", {"spatial_prior", "decay"});
  Part part;
  const Scope scope(part.parameters, 0, dtype);
  if (name == "spatial_prior")
    build_prior(fields, scope, part);
  else
    build_decay(fields, scope, part);
  fields.done();
  return part;
}

}  // namespace tessera
