#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/named_tensors.h"
#include "engine/nn/parameters.h"

namespace tessera {

/// Parameters that an optimizer steps with the same settings.
struct ParameterGroup {
  NamedTensors parameters;  ///< leaves
  double lr_scale = 1;      ///< multiplies the step's learning rate
  double weight_decay = 0;
};

/// Settings for the parameters whose names match a pattern: {"*.bias", 0} takes biases out of weight decay.
struct GroupRule {
  std::string pattern;                 ///< see matches()
  std::optional<double> weight_decay;  ///< without a value: make_groups' weight_decay
  double lr_scale = 1;
  std::optional<int64_t>
      dimensions{};  ///< takes only parameters with so many axes; 1: biases, scales of norms
};

/// The trainable parameters of a model, without its buffers.
NamedTensors trainable(const Parameters& parameters);

/// Makes a group for each rule, and one for the parameters that no rule matches. A parameter goes to the
/// first rule that matches it. Fails for a rule that gets no parameter (it is misspelt, or earlier rules take
/// its parameters), and for a scale or decay that is negative or not finite.
std::vector<ParameterGroup> make_groups(const NamedTensors& parameters, double weight_decay,
                                        const std::vector<GroupRule>& rules = {});

/// Whether `name` matches `pattern`, in which * stands for any characters (dots too) and ? for one.
bool matches(std::string_view name, std::string_view pattern);

}  // namespace tessera
