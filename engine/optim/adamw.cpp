#include "engine/optim/adamw.h"

#include <cmath>

#include "engine/core/dispatch.h"
#include "engine/optim/adamw_kernels.h"

namespace tessera {

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer("adamw", groups), options_(options), m_(zeros()), v_(zeros()) {
  for (const double beta : {options.beta1, options.beta2})
    check(beta >= 0 && beta < 1, "adamw: beta is ", beta, ", wanted from 0 to below 1");
  check(options.eps >= 0, "adamw: eps is ", options.eps, ", wanted 0 or more");
  steps_ = Tensor::zeros({static_cast<int64_t>(parameters_.size())}, DType::i64);
}

void AdamW::update(double lr, const Tensor& norm) {
  dispatch(parameters_.front(), "adamw", [&]<class Dev, class T>() {
    if constexpr (!std::is_same_v<T, bf16>) {  // the constructor refuses it
      std::vector<AdamWItem<T>> items;
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const Tensor g = parameters_[i].grad();
        if (!g.defined()) continue;
        const double t = static_cast<double>(steps_.data<int64_t>()[i] + 1), eta = lr * settings_[i].lr_scale;
        items.push_back({g.elements(), parameters_[i].data<T>(), numbers_of_gradient<T>(g), m_[i].data<T>(),
                         v_[i].data<T>(), T(1 - eta * settings_[i].weight_decay),
                         T(eta / (1 - std::pow(options_.beta1, t))),
                         T(1 / std::sqrt(1 - std::pow(options_.beta2, t)))});
      }
      const AdamWRates<T> rates{T(options_.beta1), T(1 - options_.beta1),
                                T(options_.beta2), T(1 - options_.beta2),
                                T(options_.eps),   norm.defined() ? norm.data<double>() : nullptr};
      AdamWKernels<Dev>::template step<T>(items.data(), static_cast<int64_t>(items.size()), rates);
      count(1);  // after the launch, which may fail
    }
  });
}

void AdamW::count(int64_t steps) {
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].grad().defined()) steps_.data<int64_t>()[i] += steps;
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    state.emplace_back("m." + settings_[i].name, m_[i]);
    state.emplace_back("v." + settings_[i].name, v_[i]);
    state.emplace_back("step." + settings_[i].name, steps_.rows(static_cast<int64_t>(i), 1));
  }
  return state;
}

}  // namespace tessera
