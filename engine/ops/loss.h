#pragma once

#include <optional>

#include "engine/core/tensor.h"

namespace tessera {

struct LossOptions {
  // The share e of every target that is spread over the K classes: (1 - e) t_k + e / K (Szegedy et al.,
  // 2016).
  double smoothing = 0;
  // What the sum over rows is divided by; 0 is their number. The parts of a batch give the whole batch's.
  int64_t rows = 0;
  // Rows of this label have no loss and do not count (pixels of no class); for plain labels alone.
  std::optional<int64_t> ignore = std::nullopt;
};

// Cross entropy, the mean over rows of -sum_k t_k log_softmax(x)_k -> [], f32 for bf16 logits, whose 8 bits
// are too few for a loss. logits x [..., K]; targets have no gradient. Fails for labels that are not i64
// [...] or lie outside 0 .. K-1. 0 where all rows are ignored.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const LossOptions& options = {});

// lam * cross_entropy(logits, labels_a) + (1 - lam) * cross_entropy(logits, labels_b): the loss of Mixup
// (Zhang et al., 2018) and CutMix (Yun et al., 2019). lam in [0, 1].
Tensor cross_entropy_mixed(const Tensor& logits, const Tensor& labels_a, const Tensor& labels_b, double lam,
                           const LossOptions& options = {});

// Targets [..., K] of the logits' type, as they are: a row need not add up to 1.
Tensor cross_entropy_soft(const Tensor& logits, const Tensor& targets, const LossOptions& options = {});

}  // namespace tessera
