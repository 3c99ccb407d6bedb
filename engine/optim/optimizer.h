#pragma once

#include <string>
#include <vector>

#include "engine/core/named_tensors.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

// Moves parameters down their gradients:
//
//   AdamW optimizer(make_groups(trainable(parameters), 0.05));
//   for (int64_t k = 0; k < iterations; ++k) {
//     optimizer.zero_grad();
//     { Tape tape; tape.backward(loss()); }
//     optimizer.step(schedule.lr(k));
//   }
//
// Parameters without a gradient are left alone, weight decay included. The numbers do not depend on the
// count of threads.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step at this learning rate, which must be finite and not negative.
  void step(double lr) { step(lr, {}); }
  // The same where `norm` [1] f64, the gradient's on the parameters' device, is finite; else the numbers stay
  // as they are, but for the count of steps (clip_on_device). The host does not wait for it.
  void step(double lr, const Tensor& norm);
  // After a step whose norm was not finite: it counts no more.
  virtual void undo_step_count() {}
  void zero_grad() const;

  // All that a step reads besides parameters and gradients. The tensors share the optimizer's memory.
  virtual NamedTensors state() const = 0;
  // Goes on exactly where the optimizer was that gave this state; errors as load_state's (state.h).
  void load_state(const NamedTensors& state, const std::string& where) const;

  // Of all groups, in their order.
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  struct Settings {
    std::string name;
    double lr_scale, weight_decay;
  };

  // Fails in the name of `rule` unless there are parameters, all f32 or all f64, on one device, and each is a
  // leaf of a name of its own.
  Optimizer(const char* rule, const std::vector<ParameterGroup>& groups);

  // A tensor of zeros for each parameter, as the moments start.
  std::vector<Tensor> zeros() const;

  virtual void update(double lr, const Tensor& norm) = 0;

  const char* rule_;
  std::vector<Tensor> parameters_;
  std::vector<Settings> settings_;  // of each parameter
};

}  // namespace tessera
