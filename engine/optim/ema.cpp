#include "engine/optim/ema.h"

#include "engine/core/dispatch.h"
#include "engine/optim/ema_kernels.h"
#include "engine/optim/state.h"

namespace tessera {

Ema::Ema(const NamedTensors& values, double d) : d_(d) {
  check(d >= 0 && d < 1, "ema: the decay is ", d, ", wanted from 0 to below 1");
  check(!values.empty(), "ema: there is nothing to average");
  const Tensor& first = values.front().second;
  for (const auto& [name, value] : values) {
    check(value.dtype() == DType::f32 || value.dtype() == DType::f64, "ema: '", name, "' is ", value.dtype(),
          ", wanted f32 or f64");
    check(value.dtype() == first.dtype() && value.device() == first.device(), "ema: '", name, "' is ",
          value.dtype(), " on ", value.device(), ", '", values.front().first, "' ", first.dtype(), " on ",
          first.device(), "; they must be alike");
    values_.emplace_back(name, value.detach());
    averages_.emplace_back(name, value.clone());
  }
}

void Ema::update(const Tensor& norm) {
  dispatch(values_.front().second, "ema", [&]<class Dev, class T>() {
    if constexpr (!std::is_same_v<T, bf16>) {  // the constructor refuses it
      std::vector<EmaItem<T>> items;
      for (size_t i = 0; i < values_.size(); ++i) {
        const Tensor &p = values_[i].second, &e = averages_[i].second;
        items.push_back({p.elements(), e.data<T>(), p.data<T>()});
      }
      EmaKernels<Dev>::template update<T>(items.data(), static_cast<int64_t>(items.size()), T(1 - d_),
                                          norm.defined() ? norm.data<double>() : nullptr);
    }
  });
}

void Ema::swap() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Tensor &p = values_[i].second, &e = averages_[i].second, kept = p.clone();
    p.copy_from(e);
    e.copy_from(kept);
  }
}

void Ema::load_state(const NamedTensors& state, const std::string& where) const {
  tessera::load_state(averages_, state, where);
}

}  // namespace tessera
