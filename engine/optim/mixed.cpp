#include "engine/optim/mixed.h"

#include "engine/core/dispatch.h"
#include "engine/optim/mixed_kernels.h"

namespace tessera {

namespace {

template <class Run> void on_device_of(const Tensor& first, const std::vector<MixedItem>& items, Run&& run) {
  dispatch(first, "mixed", [&]<class Dev, class T>() {
    if constexpr (std::is_same_v<T, float>)  // the constructor refuses others
      run.template operator()<Dev>(items.data(), static_cast<int64_t>(items.size()));
  });
}

}  // namespace

MixedWeights::MixedWeights(std::vector<std::pair<Tensor, Tensor>> pairs) : pairs_(std::move(pairs)) {
  check(!pairs_.empty(), "mixed: there are no weights");
  for (const auto& [wide, narrow] : pairs_)
    check(wide.is_leaf() && narrow.is_leaf() && wide.dtype() == DType::f32 && narrow.dtype() == DType::bf16 &&
              wide.shape() == narrow.shape() && wide.device() == narrow.device(),
          "mixed: ", wide.dtype(), " ", wide.shape(), " on ", wide.device(), " and ", narrow.dtype(), " ",
          narrow.shape(), " on ", narrow.device(), " are no f32 leaf and its bf16 one");
}

void MixedWeights::narrow() const {
  std::vector<MixedItem> items;
  for (const auto& [wide, narrow] : pairs_)
    items.push_back({wide.elements(), wide.data<float>(), narrow.data<bf16>(), false});
  on_device_of(pairs_.front().first, items,
               []<class Dev>(const MixedItem* all, int64_t count) { MixedKernels<Dev>::narrow(all, count); });
}

void MixedWeights::widen_gradients() const { widen(pairs_); }

void MixedWeights::widen_gradient(size_t pair) const { widen(std::span(pairs_).subspan(pair, 1)); }

void MixedWeights::lend_gradients() const {
  for (const auto& [wide, narrow] : pairs_) {
    const Tensor gradient = narrow.grad();
    if (!gradient.defined()) continue;
    Leaf& leaf = *wide.leaf();
    check(!wide.grad().defined(), "mixed: the f32 leaf ", wide.shape(),
          " has a gradient already; call zero_grad(), or widen_gradients() to add a micro-batch's");
    leaf.grad = gradient;
    leaf.stale = false;
  }
}

void MixedWeights::widen(std::span<const std::pair<Tensor, Tensor>> pairs) const {
  std::vector<MixedItem> items;
  for (const auto& [wide, narrow] : pairs) {
    const Tensor gradient = narrow.grad();
    if (!gradient.defined()) continue;
    Leaf& leaf = *wide.leaf();
    check(leaf.stale || leaf.grad.dtype() == DType::f32, "mixed: the f32 leaf ", wide.shape(),
          " has a lent gradient, to which none can be added");
    if (!leaf.grad.defined()) leaf.grad = Tensor::empty(wide.shape(), DType::f32, wide.device());
    items.push_back({wide.elements(), leaf.grad.data<float>(), gradient.data<bf16>(), !leaf.stale});
    leaf.stale = false;
  }
  if (items.empty()) return;
  on_device_of(pairs_.front().first, items,
               []<class Dev>(const MixedItem* all, int64_t count) { MixedKernels<Dev>::widen(all, count); });
}

}  // namespace tessera
