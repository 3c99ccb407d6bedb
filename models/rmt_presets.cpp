#include <map>

#include "models/rmt.h"

namespace tessera {

Json fixed_decay_config(const Json& range) { return {{"kind", "fixed"}, {"initial", 2.0}, {"range", range}}; }

Json decay_net_preset(const std::string& arch, const std::string& size, int64_t decomposed, const Json& decay,
                      int64_t image_size, int64_t num_classes) {
  struct Size {
    std::vector<int64_t> dim, depth, heads, mlp_ratio;
    double drop_path, layer_scale;  // layer_scale holds for stages 3 and 4 only
    int64_t proj_dim;
  };
  static const std::map<std::string, Size> sizes{
      {"xt", {{32, 64, 128, 256}, {2, 2, 8, 2}, {2, 2, 4, 8}, {3, 3, 3, 3}, 0.1, 0, 512}},
      {"t", {{64, 128, 256, 512}, {2, 2, 8, 2}, {4, 4, 8, 16}, {3, 3, 3, 3}, 0.1, 0, 1024}},
      {"s", {{64, 128, 256, 512}, {3, 4, 18, 4}, {4, 4, 8, 16}, {4, 4, 3, 3}, 0.15, 0, 1024}},
      {"b", {{80, 160, 320, 512}, {4, 8, 25, 8}, {5, 5, 10, 16}, {4, 4, 3, 3}, 0.4, 1e-6, 1024}},
      {"l", {{112, 224, 448, 640}, {4, 8, 25, 8}, {7, 7, 14, 20}, {4, 4, 3, 3}, 0.5, 1e-6, 1024}}};
  const Size& s = sizes.at(size);
  // Images of 32 or 64 pixels both give xt grids of 32, 16, 8 and 4 tokens a side.
  const bool small = size == "xt" && image_size <= 64;
  const Json strides = {small && image_size <= 32 ? 1 : 2, 1, small ? 1 : 2, 1};
  return {{"arch", arch},
          {"image_size", image_size},
          {"in_channels", 3},
          {"num_classes", num_classes},
          {"dim", s.dim},
          {"depth", s.depth},
          {"mlp_ratio", s.mlp_ratio},
          {"drop_path", s.drop_path},
          {"layer_scale", {0.0, 0.0, s.layer_scale, s.layer_scale}},
          {"proj_dim", s.proj_dim},
          {"tokenizer", {{"kind", "conv_stem"}, {"strides", strides}}},
          {"attention",
           {{"heads", s.heads},
            {"decomposed", {true, true, decomposed > 2, decomposed > 3}},
            {"rope", true},
            {"lepe", 5},
            {"decay", decay}}}};
}

namespace {

// rmt-t, rmt-s, rmt-b and rmt-l have the paper's sizes; rmt-xt is a smaller one for images of 32 or 64
// pixels.
Json rmt_preset(const std::string& name, int64_t image_size, int64_t num_classes) {
  struct Variant {
    const char* size;
    int64_t decomposed;  // stages; rmt-t's stage 3 is not (the released code; the paper's text has 3)
    std::vector<int64_t> range;
  };
  static const std::map<std::string, Variant> known{{"rmt-xt", {"xt", 2, {4, 4, 6, 6}}},
                                                    {"rmt-t", {"t", 2, {4, 4, 6, 6}}},
                                                    {"rmt-s", {"s", 3, {4, 4, 6, 6}}},
                                                    {"rmt-b", {"b", 3, {5, 5, 6, 6}}},
                                                    {"rmt-l", {"l", 3, {6, 6, 6, 6}}}};
  const auto& [size, decomposed, range] = known.at(name);
  return decay_net_preset("rmt", size, decomposed, fixed_decay_config(range), image_size, num_classes);
}

}  // namespace

Architecture rmt_architecture() {
  return {
      "rmt", Task::classify, make_network<RMT>, {"rmt-xt", "rmt-t", "rmt-s", "rmt-b", "rmt-l"}, rmt_preset};
}

}  // namespace tessera
