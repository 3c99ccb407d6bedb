#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/named_tensors.h"
#include "engine/nn/parameters.h"

namespace tessera {

// Parameters that an optimizer treats alike.
struct ParameterGroup {
  NamedTensors parameters;  // leaves
  double lr_scale = 1;      // times the step's learning rate
  double weight_decay = 0;
};

// What is special about the parameters whose names match: {"*.bias", 0}.
struct GroupRule {
  std::string pattern;                 // see matches()
  std::optional<double> weight_decay;  // nothing: as the others have it
  double lr_scale = 1;
  std::optional<int64_t> dimensions{};  // only those of so many: 1 for biases and the scales of norms
};

// The parameters of a model that are learned.
NamedTensors trainable(const Parameters& parameters);

// A group for each rule, and one for the parameters that no rule matches; of several rules the first counts.
// Fails for a rule that gets no parameter, since it is a typing error or stands too late, and for a factor or
// decay that is negative or not finite.
std::vector<ParameterGroup> make_groups(const NamedTensors& parameters, double weight_decay,
                                        const std::vector<GroupRule>& rules = {});

// Whether `name` is as `pattern` says: * stands for any letters, dots too, and ? for one.
bool matches(std::string_view name, std::string_view pattern);

}  // namespace tessera
