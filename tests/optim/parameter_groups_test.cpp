#include "engine/optim/parameter_groups.h"

#include <doctest/doctest.h>

#include "engine/nn/scope.h"
#include "tests/optim/steps.h"

using namespace tessera;

namespace {

std::vector<std::string> names_of(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const auto& [name, value] : group.parameters) names.push_back(name);
  return names;
}

NamedTensors parameters() {
  NamedTensors all;
  for (const char* name :
       {"cls_token", "blocks.0.fc.weight", "blocks.0.fc.bias", "blocks.0.attn.scale", "head.bias"})
    all.emplace_back(name, leaf({1}));
  return all;
}

}  // namespace

TEST_CASE("patterns") {
  CHECK(matches("blocks.0.fc.bias", "*.bias"));
  CHECK(matches("blocks.0.fc.bias", "blocks.?.*"));
  CHECK(matches("blocks.0.fc.bias", "blocks.0.fc.bias"));
  CHECK(matches("aXbXc", "a*b*c"));
  CHECK(matches("abcbc", "a*bc"));
  CHECK(matches("", "*"));
  CHECK(matches("", ""));
  CHECK(matches("a", "a**"));
  CHECK_FALSE(matches("blocks.10.fc", "blocks.?.*"));
  CHECK_FALSE(matches("bias", "*.bias"));
  CHECK_FALSE(matches("fc.bias.x", "*.bias"));
  CHECK_FALSE(matches("", "?"));
  CHECK_FALSE(matches("a", ""));
  std::string stars;
  for (int i = 0; i < 30; ++i) stars += "*a";
  CHECK_FALSE(matches(std::string(10000, 'a') + "b", stars));  // at once
}

TEST_CASE("the first rule that matches counts; the rest is a group of its own") {
  const auto groups =
      make_groups(parameters(), 0.05, {{"head.*", std::nullopt, 10}, {"*.bias", 0.0}, {"*scale", 0.1, 0.5}});
  REQUIRE(groups.size() == 4);
  CHECK(names_of(groups[0]) == std::vector<std::string>{"head.bias"});
  CHECK(groups[0].weight_decay == 0.05);
  CHECK(groups[0].lr_scale == 10);
  CHECK(names_of(groups[1]) == std::vector<std::string>{"blocks.0.fc.bias"});
  CHECK(groups[1].weight_decay == 0);
  CHECK(groups[2].weight_decay == 0.1);
  CHECK(groups[2].lr_scale == 0.5);
  CHECK(names_of(groups[3]) == std::vector<std::string>{"cls_token", "blocks.0.fc.weight"});
  CHECK(groups[3].weight_decay == 0.05);
  CHECK(groups[3].lr_scale == 1);
  CHECK(make_groups(parameters(), 0, {{"*", 0.1}}).size() == 1);
  CHECK(make_groups(parameters(), 0).size() == 1);
}

TEST_CASE("a rule that gets nothing is an error that says why") {
  const auto error = [](const std::vector<GroupRule>& rules, double decay = 0) {
    return error_of([&] { make_groups(parameters(), decay, rules); });
  };
  CHECK(error({{"cls_tokens", 0.0}}) ==
        "parameter groups: 'cls_tokens' matches no parameter; did you mean 'cls_token'?");
  CHECK(error({{"norm.*", 0.0}}) == "parameter groups: 'norm.*' matches no parameter");
  CHECK(error({{"*.bias", 0.0}, {"head.bias", 0.1}}) ==
        "parameter groups: earlier patterns take all that 'head.bias' matches, such as 'head.bias'; put it "
        "before them");
  CHECK(error({{"*", -0.1}}) == "parameter groups: '*' has the weight_decay -0.1, wanted 0 or more");
  CHECK(error({{"*", 0.1, -1}}) == "parameter groups: '*' has the lr_scale -1, wanted 0 or more");
  CHECK(error({}, -1) == "parameter groups: '*' has the weight_decay -1, wanted 0 or more");
}

TEST_CASE("of a model the parameters are learned, the buffers are not") {
  Parameters all;
  const Scope scope(all, 1);
  const Tensor weight = scope.parameter("weight", {2}, constant(1));
  scope.buffer("running_mean", {2}, constant(0));
  const NamedTensors learned = trainable(all);
  REQUIRE(learned.size() == 1);
  CHECK(learned[0].first == "weight");
  CHECK(learned[0].second.leaf() == weight.leaf());
}
