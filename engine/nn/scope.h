#pragma once

#include <string>
#include <string_view>

#include "engine/core/random.h"
#include "engine/nn/init.h"
#include "engine/nn/parameters.h"

namespace tessera {

// Where in the model a module is made: it names each parameter there, and is the only way to get one, so
// that none escapes the optimizer or the checkpoint.
//
//   Linear fc1(scope / "fc1", dim, hidden);     // blocks.0.mlp.fc1.weight, .bias
class Scope {
 public:
  Scope(Parameters& parameters, uint64_t seed, DType dtype = DType::f32, Device device = Device::cpu)
      : parameters_(&parameters), random_(seed), dtype_(dtype), device_(device) {}

  Scope operator/(std::string_view name) const;
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }

  // A trainable leaf, drawn from a stream that depends on the seed and its name alone.
  Tensor parameter(std::string_view name, const Shape& shape, const Init& init) const;
  // A tensor that is saved with the model but not trained.
  Tensor buffer(std::string_view name, const Shape& shape, const Init& init) const;
  // A buffer that forward passes move (Parameter::statistic): f32 in a model of bf16, which would lose small
  // changes.
  Tensor statistic(std::string_view name, const Shape& shape, const Init& init) const;

  // The same place, for a model whose linear layers start by another rule.
  Scope with(LinearRule rule) const;
  LinearRule linear_rule() const { return linear_rule_; }

  const std::string& path() const { return path_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

 private:
  enum class Kind : uint8_t { parameter, buffer, statistic };
  Tensor make(std::string_view name, const Shape& shape, const Init& init, Kind kind) const;
  std::string joined(std::string_view name) const;

  Parameters* parameters_;
  Random random_;
  DType dtype_;
  Device device_;
  LinearRule linear_rule_ = LinearRule::xavier;
  std::string path_;
};

}  // namespace tessera
