#include "models/parts/frame.h"

#include <numeric>

#include "models/parts/stages.h"

namespace tessera {

int64_t Frame::hidden(int64_t dim) const {
  return static_cast<int64_t>(static_cast<double>(dim) * mlp_ratio);
}

Frame read_frame(Fields& fields, const char* arch, Range classes) {
  const Range positive = Range::at_least(1);
  fields.choice("arch", {arch});
  Frame frame;
  frame.image_size = fields.get<int64_t>("image_size", positive);
  frame.in_channels = fields.get<int64_t>("in_channels", 3, positive);
  frame.num_classes = fields.get<int64_t>("num_classes", classes);
  frame.mlp_ratio = fields.get("mlp_ratio", 2.0, Range::above(0));
  frame.eps = fields.get("norm_eps", 1e-5);
  return frame;
}

StagedFrame read_staged_frame(Fields& fields, const char* arch, const char* default_rule, Range classes) {
  StagedFrame frame{read_frame(fields, arch, classes), {}, {}, {}, {}, {}};
  const auto first_dim = fields.get<int64_t>("dim", Range::at_least(1));
  frame.depth = fields.get<std::vector<int64_t>>("depth", Range::at_least(1));
  if (frame.depth.empty()) fields.fail_at("depth", "is an empty list, a stage at least is wanted");
  for (size_t i = 0; i < frame.depth.size(); ++i) frame.dims.push_back(first_dim << i);
  const int64_t blocks = std::accumulate(frame.depth.begin(), frame.depth.end(), int64_t{0});
  frame.rates = drop_rates(fields, blocks, default_rule);
  frame.tokenizer = read_tokenizer(fields.object("tokenizer"));
  frame.attention = read_staged_attention(fields, frame.dims);
  for (const AttentionOptions& o : frame.attention)
    check(o.prior.sharing != Sharing::model, arch,
          ": the stages' grids differ, so a prior cannot be shared by the ",
          "model; share it by head or layer");
  return frame;
}

Modifiers modifiers_of(const std::string& name) {
  const bool both = name.starts_with("sl-");
  return {.shifted = both || name.starts_with("s-"),
          .locality = both || name.starts_with("l-"),
          .shifted_pool = name.ends_with("-spool")};
}

Json preset_frame(const char* arch, int64_t image_size, int64_t num_classes) {
  return {{"arch", arch}, {"image_size", image_size}, {"in_channels", 3}, {"num_classes", num_classes}};
}

Json shifted_options() { return {{"kind", "shifted"}, {"directions", "diagonal"}, {"ratio", 0.5}}; }

}  // namespace tessera
