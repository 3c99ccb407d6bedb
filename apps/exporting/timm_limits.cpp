#include "apps/exporting/timm_limits.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "models/presets.h"

namespace tessera {

namespace {

// "(0.5)", "(learned)": what the config has at a key.
template <class T>
void want(const Json& object, const std::string& path, const char* key, const T& wanted, const char* why) {
  if (!object.contains(key) || object.at(key).is_null()) return;
  const Json &given = object.at(key), expected = wanted;
  const bool all = given.is_array()
                       ? std::ranges::all_of(given, [&](const Json& each) { return each == expected; })
                       : given == expected;
  check(all, "timm: ", path, key, " is ", given.dump(), ", and ", why);
}

void refuse_key(const Json& object, const std::string& path, const char* key, const char* why) {
  check(!object.contains(key) || object.at(key).is_null(), "timm: ", path, key, " is given, and ", why);
}

void check_attention(const Json& attention) {
  const std::string path = "attention.";
  want(attention, path, "scale", "fixed", "timm's attention has no learned scale (LSA)");
  want(attention, path, "mask_diagonal", false, "timm's attention does not mask its diagonal (LSA)");
  want(attention, path, "temperature", 1.0, "timm's softmax has the temperature 1");
  refuse_key(attention, path, "prior", "timm's attention has no spatial prior (SP-SA)");
  refuse_key(attention, path, "decay", "timm's attention has no decay");
}

// timm's ViT and PiT take heads that make up the width; Swin takes any.
void check_heads(const Json& config) {
  const Json& attention = config.at("attention");
  if (!attention.contains("head_dim")) return;
  const Json stages = config.at("depth").is_array() ? config.at("depth") : Json::array({config.at("depth")});
  const auto at = [&](const char* key, size_t i) {
    const Json& value = attention.at(key);
    return (value.is_array() ? value.at(i) : value).get<int64_t>();
  };
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t width = config.at("dim").get<int64_t>() << i, heads = at("heads", i),
                  each = at("head_dim", i);
    check(heads * each == width, "timm: attention has ", heads, " heads of ", each,
          " channels in a width of ", width, ", and timm's heads make up the width");
  }
}

void check_tokenizer(const Json& config, bool overlaps, bool post_norm) {
  const Json& tokenizer = config.at("tokenizer");
  want(tokenizer, "tokenizer.", "kind", "patch", "timm's patches are not shifted (SPT)");
  if (!overlaps)
    want(tokenizer, "tokenizer.", "stride", tokenizer.at("patch_size"),
         "timm's patches of this network do not overlap");
  const bool normed = tokenizer.value("post_norm", false);
  check(normed == post_norm, "timm: tokenizer.post_norm is ", normed ? "true" : "false",
        ", and timm's network has ", post_norm ? "a" : "no", " norm after the patches");
}

void check_swin(const Json& config) {
  check(!config.value("pos_embed", true),
        "timm: pos_embed is true, and timm's Swin has no position embedding");
  check(config.at("attention").value("relative_bias", false),
        "timm: attention.relative_bias is false, and timm's Swin has one");
  want(config, "", "norm_eps", 1e-5, "timm's Swin has 1e-5");
  if (config.contains("pool"))
    want(config.at("pool"), "pool.", "kind", "merge", "timm's Swin merges patches without shifts (S_pool)");
  same_for_stages(config.at("attention"), "qkv_bias");
}

void check_pit(const Json& config) {
  check_heads(config);
  if (config.contains("pool"))
    want(config.at("pool"), "pool.", "kind", "conv",
         "timm's PiT pools by a convolution, without shifts (S_pool)");
  same_for_stages(config.at("attention"), "qkv_bias");
}

void check_efficientnet(const Json& config) {
  const Json b0 = preset("efficientnet-b0", config.at("image_size").get<int64_t>(), 10);
  check(config.at("stages") == b0.at("stages") && config.value("stem_width", 32) == 32,
        "timm: the stages of this EfficientNet are not B0's");
  want(config, "", "stem_stride", 2, "timm's EfficientNet-B0 has 2");
  check(config.value("stem_stride", 1) == 2, "timm: stem_stride is 1, and timm's EfficientNet-B0 has 2");
  check(config.value("head_width", 0) == 1280, "timm: head_width is ", config.value("head_width", 0),
        ", and timm's EfficientNet-B0 has 1280");
}

}  // namespace

Json same_for_stages(const Json& object, const char* key) {
  if (!object.contains(key)) return {};
  const Json& value = object.at(key);
  if (!value.is_array()) return value;
  for (const Json& each : value)
    check(each == value.front(), "timm: ", key, " is ", value.dump(), ", and timm has one for all stages");
  return value.front();
}

void check_timm_has(const Json& config) {
  const auto arch = config.at("arch").get<std::string>();
  check(arch == "vit" || arch == "pit" || arch == "swin" || arch == "efficientnet",
        "timm: has no network like ", arch,
        "; it has ViT, PiT, Swin and EfficientNet-B0. ONNX takes every network");
  if (arch == "efficientnet") return check_efficientnet(config);
  check_attention(config.at("attention"));
  check_tokenizer(config, arch == "pit", arch == "swin");
  if (arch == "vit") check_heads(config);
  if (arch == "vit")
    want(config.at("attention"), "attention.", "relative_bias", false, "timm's ViT has no relative bias");
  if (arch == "pit")
    want(config.at("attention"), "attention.", "relative_bias", false, "timm's PiT has no relative bias");
  if (arch == "pit") check_pit(config);
  if (arch == "swin") check_swin(config);
}

}  // namespace tessera
