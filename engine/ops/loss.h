#pragma once

#include <optional>

#include "engine/core/tensor.h"

namespace tessera {

struct LossOptions {
  /// Label smoothing (Szegedy et al., 2016): the share e of every target that is spread evenly over the K
  /// classes, (1 - e) t_k + e / K.
  double smoothing = 0;
  /// The divisor of the sum over rows; 0 means their number. For a part of a batch, give the rows of the
  /// whole.
  int64_t rows = 0;
  /// Rows with this label have no loss and do not count (pixels of no class); only for plain labels.
  std::optional<int64_t> ignore = std::nullopt;
};

/// Cross entropy, the mean over rows of -sum_k t_k log_softmax(x)_k -> [], in f32 for bf16 logits, whose 8
/// bits are too few for a loss. logits x [..., K]; the targets get no gradient. Fails for labels that are not
/// i64
/// [...] or lie outside 0 .. K-1. The loss is 0 where all rows are ignored.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const LossOptions& options = {});

/// lam * cross_entropy(logits, labels_a) + (1 - lam) * cross_entropy(logits, labels_b): the loss of Mixup
/// (Zhang et al., 2018) and CutMix (Yun et al., 2019). lam in [0, 1].
Tensor cross_entropy_mixed(const Tensor& logits, const Tensor& labels_a, const Tensor& labels_b, double lam,
                           const LossOptions& options = {});

/// Targets [..., K] of the logits' type, used as they are: a row need not add up to 1.
Tensor cross_entropy_soft(const Tensor& logits, const Tensor& targets, const LossOptions& options = {});

}  // namespace tessera
