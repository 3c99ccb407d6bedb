#include "apps/inspector/only.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/inspector/picture_inputs.h"
#include "models/presets.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

InspectedPass small_pass() {
  Json config = preset("sl-vit", 16, 3);
  config["depth"] = 3;
  return inspect_pass(
      inputs_of_picture(build(config), {.image = Image(16, 16)}, {imagenet_normalisation}, {}));
}

bool has(const PassRecord& record, const std::string& name) {
  return std::ranges::any_of(record.values(), [&](const PassRecord::Value& v) { return v.name == name; });
}

}  // namespace

TEST_CASE("only: the modules that were named, what they read, and what was left out") {
  const InspectedPass whole = small_pass();
  const PartOfPass part = only(whole, {"blocks.1", "blocks.2.attn"});
  for (const PassRecord::Step& step : part.record.steps())
    CHECK((step.module.starts_with("blocks.1") || step.module.starts_with("blocks.2.attn")));
  CHECK(part.left_out == std::vector<std::string>{"patch_embed", "the model's own steps", "blocks.0",
                                                  "blocks.2.norm1", "blocks.2.norm2", "blocks.2.mlp", "norm",
                                                  "head"});
  CHECK(has(part.record, "blocks.1.mlp.fc1.weight"));
  CHECK_FALSE(has(part.record, "blocks.0.mlp.fc1.weight"));
  CHECK_FALSE(has(part.record, "blocks.2.mlp.fc1.out"));
  for (const char* name : {"input", "logits", "loss"}) CHECK(has(part.record, name));
  for (const PassRecord::Value& value : part.record.values()) {
    const PassRecord::Value& own = whole.record.value(value.name);
    CHECK(value.value.raw() == own.value.raw());
    CHECK(value.gradient.defined() == own.gradient.defined());
  }
  // The first block's output is read by the second's norm1 and residual, which are here; the attention of the
  // third reads its norm1, which was left out.
  CHECK(part.record.value("blocks.0.out").readers_left_out == 0);
  CHECK(part.record.value("blocks.1.out").readers_left_out == 2);
  CHECK(part.record.value("blocks.2.norm1.out").kind == PassRecord::Kind::computed);
}

TEST_CASE("only: patterns, every step in its place, and all of it") {
  const InspectedPass whole = small_pass();
  const PartOfPass attention = only(whole, {"blocks.*.attn"});
  int64_t softmaxes = 0;
  for (const PassRecord::Step& step : attention.record.steps()) {
    CHECK(step.module.find(".attn") != std::string::npos);
    const PassRecord::Value& made = attention.record.values()[step.output];
    CHECK(whole.record.value(made.name).value.raw() == made.value.raw());
    softmaxes += step.op->name == std::string_view("softmax");
  }
  CHECK(softmaxes == 3);
  CHECK(error_of([&] { only(whole, {"block.1"}); }).find("did you mean 'blocks.1'?") != std::string::npos);
  CHECK(error_of([&] {
          only(whole, {"blocks.1", "blocks.7"});
        }).find("--only blocks.7") != std::string::npos);
}

TEST_CASE("only: roundings go with their values, and none where a reader is missing") {
  const InspectedPass whole = small_pass();
  REQUIRE(whole.roundings.values.size() == whole.record.values().size());
  const PartOfPass part = only(whole, {"blocks.1"});
  REQUIRE(part.roundings.values.size() == part.record.values().size());
  for (size_t i = 0; i < part.record.values().size(); ++i)
    if (part.record.values()[i].readers_left_out > 0) CHECK_FALSE(part.roundings.gradients[i].known);
}
