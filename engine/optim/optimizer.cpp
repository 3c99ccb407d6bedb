#include "engine/optim/optimizer.h"

#include <cmath>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/optim/state.h"

namespace tessera {

Optimizer::Optimizer(const char* rule, const std::vector<ParameterGroup>& groups) : rule_(rule) {
  std::unordered_set<const Leaf*> leaves;
  std::unordered_set<std::string_view> names;
  for (const ParameterGroup& group : groups) {
    for (const auto& [name, value] : group.parameters) {
      check(value.is_leaf(), rule, ": '", name, "' has no gradient; call require_grad()");
      check(leaves.insert(value.leaf().get()).second && names.insert(name).second, rule, ": '", name,
            "' is given twice");
      check(value.dtype() == DType::f32 || value.dtype() == DType::f64, rule, ": '", name, "' is ",
            value.dtype(), "; steps are too small for it, keep parameters in f32");
      parameters_.push_back(value);
      settings_.push_back({name, group.lr_scale, group.weight_decay});
      const Tensor& first = parameters_.front();
      check(value.dtype() == first.dtype() && value.device() == first.device(), rule, ": '", name, "' is ",
            value.dtype(), " on ", value.device(), ", '", settings_.front().name, "' ", first.dtype(), " on ",
            first.device(), "; they must be alike");
    }
  }
  check(!parameters_.empty(), rule, ": there are no parameters");
}

void Optimizer::step(double lr, const Tensor& norm) {
  check(std::isfinite(lr) && lr >= 0, rule_, ": the learning rate is ", lr, ", wanted 0 or more");
  update(lr, norm);
}

void Optimizer::zero_grad() const {
  for (const Tensor& p : parameters_) p.zero_grad();
}

void Optimizer::load_state(const NamedTensors& state, const std::string& where) const {
  tessera::load_state(this->state(), state, where);
}

std::vector<Tensor> Optimizer::zeros() const {
  std::vector<Tensor> all;
  for (const Tensor& p : parameters_) all.push_back(Tensor::zeros(p.shape(), p.dtype(), p.device()));
  return all;
}

}  // namespace tessera
