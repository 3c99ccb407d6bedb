#pragma once

#include <string>
#include <vector>

#include "engine/core/named_tensors.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

/// Updates parameters by their gradients. One file a rule derives from it:
///
///   AdamW optimizer(make_groups(trainable(parameters), 0.05));
///   for (int64_t k = 0; k < iterations; ++k) {
///     optimizer.zero_grad();
///     { Tape tape; tape.backward(loss()); }
///     optimizer.step(schedule.lr(k));
///   }
///
/// A parameter without a gradient stays as it is, without weight decay. Results do not depend on the number
/// of threads.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Takes one step with this learning rate. Fails unless it is finite and not negative.
  void step(double lr) { step(lr, {}); }
  /// Takes the step only if norm [1] (f64, on the parameters' device, from clip_on_device) is finite. Else
  /// nothing but the step count changes, since the host does not wait for the norm; see undo_step_count().
  void step(double lr, const Tensor& norm);
  /// Takes the last step out of the step count. Call it after a step whose norm was not finite.
  virtual void undo_step_count() {}
  void zero_grad() const;

  /// Everything that a step reads besides parameters and gradients, to save it. The tensors share the
  /// optimizer's memory.
  virtual NamedTensors state() const = 0;
  /// Restores the state of another optimizer, to go on exactly where it was. Fails as load_state() of
  /// state.h.
  void load_state(const NamedTensors& state, const std::string& where) const;

  /// The parameters of all groups, in their order.
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  struct Settings {
    std::string name;
    double lr_scale, weight_decay;
  };

  /// Fails, naming `rule`, unless there are parameters, all are f32 or all f64, on one device, and each is a
  /// leaf with a name of its own.
  Optimizer(const char* rule, const std::vector<ParameterGroup>& groups);

  /// A tensor of zeros for each parameter, in which moments start.
  std::vector<Tensor> zeros() const;

  /// Does the step, for a learning rate that step() has checked.
  virtual void update(double lr, const Tensor& norm) = 0;

  const char* rule_;
  std::vector<Tensor> parameters_;
  std::vector<Settings> settings_;  ///< one for each parameter
};

}  // namespace tessera
