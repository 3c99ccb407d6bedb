#include "engine/optim/sgd.h"

#include "engine/core/dispatch.h"
#include "engine/optim/sgd_kernels.h"

namespace tessera {

Sgd::Sgd(const std::vector<ParameterGroup>& groups, const Options& options)
    : Optimizer("sgd", groups), options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, "sgd: momentum is ", options.momentum,
        ", wanted from 0 to below 1");
  check(!options.nesterov || options.momentum > 0, "sgd: nesterov needs a momentum above 0");
  if (options.momentum > 0) b_ = zeros();
}

void Sgd::update(double lr, const Tensor& norm) {
  dispatch(parameters_.front(), "sgd", [&]<class Dev, class T>() {
    if constexpr (!std::is_same_v<T, bf16>) {  // the constructor refuses it
      std::vector<SgdItem<T>> items;
      for (size_t i = 0; i < parameters_.size(); ++i) {
        const Tensor g = parameters_[i].grad();
        if (!g.defined()) continue;
        items.push_back({g.elements(), parameters_[i].data<T>(), numbers_of_gradient<T>(g),
                         b_.empty() ? nullptr : b_[i].data<T>(), T(lr * settings_[i].lr_scale),
                         T(settings_[i].weight_decay)});
      }
      SgdKernels<Dev>::template step<T>(items.data(), static_cast<int64_t>(items.size()),
                                        T(options_.momentum), options_.nesterov,
                                        norm.defined() ? norm.data<double>() : nullptr);
    }
  });
}

NamedTensors Sgd::state() const {
  NamedTensors state;
  for (size_t i = 0; i < b_.size(); ++i) state.emplace_back("b." + settings_[i].name, b_[i]);
  return state;
}

}  // namespace tessera
