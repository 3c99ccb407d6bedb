#include "engine/optim/statistics.h"

#include "engine/core/dispatch.h"
#include "engine/optim/statistics_kernels.h"

namespace tessera {

namespace {

using Pair = Statistics::Pair;

// A copy from one tensor of a pair to the other, done if the step was taken, or if it was skipped.
struct Way {
  const Tensor &from, &to;
  bool when_taken;
};
// Copies between the tensors of each pair as between(pair) says. An undefined norm copies all.
template <class Between>
void copy_pairs(const std::vector<Pair>& pairs, const Tensor& norm, Between between) {
  if (pairs.empty()) return;
  dispatch(pairs.front().own, "statistics", [&]<class Dev, class T>() {
    if constexpr (!std::is_same_v<T, bf16>) {  // the constructor refuses it
      std::vector<StatisticsItem<T>> items;
      for (const Pair& pair : pairs) {
        const Way way = between(pair);
        items.push_back(
            {way.from.elements(), way.from.template data<T>(), way.to.template data<T>(), way.when_taken});
      }
      StatisticsKernels<Dev>::template copy<T>(items.data(), static_cast<int64_t>(items.size()),
                                               norm.defined() ? norm.data<double>() : nullptr);
    }
  });
}

}  // namespace

Statistics::Statistics(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {
  for (const auto& [own, other, other_moves] : pairs_)
    check(own.dtype() == wide(own.dtype()) && own.dtype() == pairs_.front().own.dtype() &&
              other.dtype() == own.dtype() && other.shape() == own.shape() && other.device() == own.device(),
          "statistics: ", own.dtype(), " ", own.shape(), " on ", own.device(), " and ", other.dtype(), " ",
          other.shape(), " on ", other.device(), " are no pair; f32 or f64 of one shape are wanted");
}

void Statistics::begin_step() const {
  copy_pairs(pairs_, {}, [](const Pair& pair) { return Way{pair.own, pair.other, true}; });
}

void Statistics::end_step(const Tensor& norm) const {
  copy_pairs(pairs_, norm, [](const Pair& pair) { return Way{pair.other, pair.own, pair.other_moves}; });
}

}  // namespace tessera
