#include "engine/ops/correct.h"

#include "engine/core/dispatch.h"
#include "engine/ops/correct_kernels.h"
#include "engine/ops/same_device.h"

namespace tessera {

Tensor count_correct(const Tensor& logits, const Tensor& labels) {
  check(logits.rank() == 2 && labels.shape() == Shape{logits.dim(0)} && labels.dtype() == DType::i64,
        "count_correct: logits ", logits.shape(), "; [B, K] and labels i64 [B] are wanted, not ",
        labels.dtype(), " ", labels.shape());
  check_same_device("count_correct", {logits, labels});
  const Tensor count = Tensor::empty({1}, DType::i64, logits.device());
  dispatch(logits, "count_correct", [&]<class Dev, class T>() {
    CorrectKernels<Dev>::template count<T>(logits.dim(0), logits.dim(1), logits.data<T>(),
                                           labels.data<int64_t>(), count.data<int64_t>());
  });
  return count;
}

}  // namespace tessera
