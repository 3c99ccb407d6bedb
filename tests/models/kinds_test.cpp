#include "models/kinds.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/core/dispatch.h"
#include "models/model.h"
#include "models/presets.h"
#include "tests/error_of.h"
#include "tests/sanitized.h"

using namespace tessera;

namespace {

Json attention_with(const Json& decay) { return {{"attention", {{"decay", decay}}}}; }

}  // namespace

TEST_CASE("another kind drops the keys of the former one, and the model builds") {
  const DryRun dry;
  const Json sdt = preset("sdt-h-t", 64, 10), rmt = preset("rmt-t", 64, 10), vit = preset("sl-vit", 64, 10),
             swin = preset("swin", 64, 10);
  const auto decay_of = [](const Json& config) { return config.at("attention").at("decay"); };
  const Json fixed = changed(sdt, attention_with({{"kind", "fixed"}, {"range", {4, 4, 6, 6}}}));
  CHECK(decay_of(fixed) == Json{{"kind", "fixed"}, {"range", {4, 4, 6, 6}}});
  const Json distance = changed(sdt, attention_with({{"kind", "distance"}}));
  CHECK(decay_of(distance) == Json{{"kind", "distance"}, {"alpha", 1.0}});
  const Json content = changed(rmt, attention_with({{"kind", "content"}}));
  CHECK(decay_of(content) == Json{{"kind", "content"}});
  const Json started = changed(rmt, attention_with({{"kind", "content"}, {"start", "rmt"}, {"range", 5}}));
  CHECK(decay_of(started) == Json{{"kind", "content"}, {"start", "rmt"}, {"range", 5}});
  const Json plain = changed(vit, {{"tokenizer", {{"kind", "patch"}}}});
  CHECK(plain.at("tokenizer") == Json{{"kind", "patch"}, {"patch_size", 8}});
  const Json shifted =
      changed(swin, {{"tokenizer", {{"kind", "shifted"}, {"ratio", 0.25}}}, {"pool", {{"kind", "shifted"}}}});
  CHECK(shifted.at("tokenizer") == Json{{"kind", "shifted"}, {"patch_size", 4}, {"ratio", 0.25}});
  const Json pooled = changed(preset("sl-swin-spool", 64, 10), {{"pool", {{"kind", "merge"}}}});
  CHECK(pooled.at("pool") == Json{{"kind", "merge"}});
  for (const Json& config : {fixed, distance, content, started, plain, shifted, pooled})
    CHECK_NOTHROW(build(config));
}

TEST_CASE("the same kind keeps all keys, null removes one, and a key of another kind is still refused") {
  const DryRun dry;
  const Json sdt = preset("sdt-h-t", 64, 10);
  const Json alpha =
      changed(sdt, attention_with({{"kind", "content"}, {"alpha", 2.0}, {"distance", nullptr}}));
  CHECK(alpha.at("attention").at("decay") == Json{{"kind", "content"}, {"alpha", 2.0}});
  const Json wrong = changed(sdt, attention_with({{"kind", "fixed"}, {"alpha", 2.0}}));
  CHECK(error_of([&] { build(wrong); }).find("attention.decay.alpha is not known here") != std::string::npos);
}

TEST_CASE("a shift that truncates to 0 pixels is refused; a ratio of 0 is one's own choice") {
  const DryRun dry;
  for (const auto& [name, object] : {std::pair{"s-vit", "tokenizer"},
                                     {"sl-t2t", "tokenizer"},
                                     {"sl-swin-spool", "pool"},
                                     {"sl-pit-spool", "pool"}}) {
    CAPTURE(name);
    const Json config = preset(name, 32, 10);
    const auto with = [&](double ratio) { return changed(config, {{object, {{"ratio", ratio}}}}); };
    const std::string error = error_of([&] { build(with(0.125)); });
    CHECK(error.find(std::string(object) + ".ratio is 0.125") != std::string::npos);
    CHECK(error.find("truncates to 0") != std::string::npos);
    CHECK_NOTHROW(build(with(0.5)));
    CHECK_NOTHROW(build(with(0)));
  }
  const Json stems{{"tokenizer", {{"directions", "diagonal"}, {"ratio", 0.2}}}};
  CHECK(error_of([&] { build(changed(preset("rmt-t", 64, 10), stems)); }).find("truncates") !=
        std::string::npos);
  CHECK_NOTHROW(build(changed(preset("lvvit-t", 64, 10), stems)));
}

TEST_CASE("a size that no model has is refused before anything is built") {
  for (const auto& [key, value, why] :
       {std::tuple{"depth", int64_t{1} << 31, "depth is 2147483648, wanted at most 4096"},
        {"depth", int64_t{4097}, "wanted at most 4096"},
        {"dim", int64_t{1} << 40, "dim is 1099511627776, wanted at most 1048576"}}) {
    Json config = preset("vit", 32, 10);
    config[key] = value;
    CHECK(error_of([&] { build(config); }).find(why) != std::string::npos);
  }
  Json heads = preset("vit", 32, 10);
  heads["attention"]["heads"] = 99999999999;
  CHECK(error_of([&] { build(heads); }) == "model: heads is 99999999999, wanted at most 1048576");
}

// The thread sanitizer leaves fewer addresses than these weights take.
TEST_CASE(
    "weights that this machine cannot hold are refused with what they need, and are counted in a dry run" *
    doctest::skip(thread_sanitized)) {
  Json config = preset("vit", 32, 10);
  config["dim"] = 98304;
  config["depth"] = 64;
  CHECK(error_of([&] { build(config); }).starts_with("model: the weights of this config need "));
  const DryRun dry;
  CHECK_NOTHROW(build(config));
}
