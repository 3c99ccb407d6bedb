#pragma once

#include <string>
#include <string_view>

#include "engine/core/random.h"
#include "engine/nn/init.h"
#include "engine/nn/parameters.h"

namespace tessera {

/// A place in the model's tree of modules. It names each parameter that is made there, and is the only way to
/// make one, so that none escapes the optimizer or the checkpoint.
///
///   Linear fc1(scope / "fc1", dim, hidden);     // blocks.0.mlp.fc1.weight, .bias
class Scope {
 public:
  Scope(Parameters& parameters, uint64_t seed, DType dtype = DType::f32, Device device = Device::cpu)
      : parameters_(&parameters), random_(seed), dtype_(dtype), device_(device) {}

  Scope operator/(std::string_view name) const;
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }

  /// Makes a trainable leaf. Its initial values depend on the seed and its full name alone. Fails for a name
  /// that was used before, as buffer() and statistic() do.
  Tensor parameter(std::string_view name, const Shape& shape, const Init& init) const;
  /// Makes a tensor that is saved with the model but not trained.
  Tensor buffer(std::string_view name, const Shape& shape, const Init& init) const;
  /// Makes a buffer that forward passes update (Parameter::statistic). It is f32 in a bf16 model, because
  /// bf16 would lose small changes.
  Tensor statistic(std::string_view name, const Shape& shape, const Init& init) const;

  /// The same place with another rule for the initial values of linear layers.
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
