#include "engine/optim/parameter_groups.h"

#include <cmath>

#include "engine/core/error.h"

namespace tessera {

namespace {

void expect_sound(const GroupRule& rule) {
  check(std::isfinite(rule.lr_scale) && rule.lr_scale >= 0, "parameter groups: '", rule.pattern,
        "' has the lr_scale ", rule.lr_scale, ", wanted 0 or more");
  const double decay = rule.weight_decay.value_or(0);
  check(std::isfinite(decay) && decay >= 0, "parameter groups: '", rule.pattern, "' has the weight_decay ",
        decay, ", wanted 0 or more");
}

bool takes(const GroupRule& rule, const std::string& name, const Tensor& value) {
  return matches(name, rule.pattern) && (!rule.dimensions || value.rank() == *rule.dimensions);
}

// Fails with the reason why `rule` got no parameter.
[[noreturn]] void fail_unused(const GroupRule& rule, const NamedTensors& parameters) {
  std::vector<std::string> names;
  for (const auto& [name, value] : parameters) {
    check(!takes(rule, name, value), "parameter groups: earlier patterns take all that '", rule.pattern,
          "' matches, such as '", name, "'; put it before them");
    names.push_back(name);
  }
  check(!rule.dimensions, "parameter groups: '", rule.pattern, "' matches no parameter of ",
        rule.dimensions.value_or(0), " dimensions");
  fail("parameter groups: '", rule.pattern, "' matches no parameter", did_you_mean(rule.pattern, names));
}

}  // namespace

NamedTensors trainable(const Parameters& parameters) {
  NamedTensors learned;
  for (const Parameter& p : parameters)
    if (p.trainable) learned.emplace_back(p.name, p.value);
  return learned;
}

std::vector<ParameterGroup> make_groups(const NamedTensors& parameters, double weight_decay,
                                        const std::vector<GroupRule>& rules) {
  std::vector<ParameterGroup> groups;
  for (const GroupRule& rule : rules) {
    expect_sound(rule);
    groups.push_back({{}, rule.lr_scale, rule.weight_decay.value_or(weight_decay)});
  }
  expect_sound(GroupRule{"*", weight_decay, 1});
  groups.push_back({{}, 1, weight_decay});
  for (const auto& parameter : parameters) {
    size_t i = 0;
    while (i < rules.size() && !takes(rules[i], parameter.first, parameter.second)) ++i;
    groups[i].parameters.push_back(parameter);
  }
  for (size_t i = 0; i < rules.size(); ++i)
    if (groups[i].parameters.empty()) fail_unused(rules[i], parameters);
  if (groups.back().parameters.empty()) groups.pop_back();
  return groups;
}

bool matches(std::string_view name, std::string_view pattern) {
  // On a mismatch only the last star takes one more character: earlier stars never need to change.
  size_t n = 0, p = 0, star = pattern.npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

}  // namespace tessera
