#include <cmath>

#include "engine/check/op_case.h"
#include "engine/ops/batch_norm.h"

namespace tessera {

namespace {

OpCase norm(const char* variant, bool training, const Shape& x) {
  const int64_t width = x[-1];
  return {"batch_norm",
          variant,
          {random_tensor(x, 1), random_tensor({width}, 2), random_tensor({width}, 3)},
          [=](std::span<const Tensor> in) {
            Tensor mean = random_tensor({width}, 4), variance = random_tensor({width}, 5);
            for (int64_t i = 0; i < width; ++i)
              variance.data<double>()[i] = 1 + std::abs(variance.data<double>()[i]);
            const auto its = [&](const Tensor& t) { return t.to(wide(in[0].dtype())).to(in[0].device()); };
            return batch_norm(in[0], in[1], in[2], its(mean), its(variance), {.training = training});
          }};
}

}  // namespace

OpCases batch_norm_cases() {
  return {norm("batch statistics", true, {3, 4, 5}), norm("running statistics", false, {3, 4, 5}),
          norm("many rows", true, {200, 2}), norm("wide", true, {70, 132})};
}

}  // namespace tessera
