#include "engine/ops/loss.h"

#include <algorithm>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/loss_kernels.h"
#include "engine/ops/write.h"

namespace tessera {

namespace {

// The targets as tensors; those that are undefined play no part.
struct Aims {
  Tensor a, b;
  double lam = 1;
  Tensor soft;

  template <class T> Targets<T> pointers(const LossOptions& options) const {
    const auto labels = [](const Tensor& x) { return x.defined() ? x.data<int64_t>() : nullptr; };
    Targets<T> targets{labels(a), labels(b), lam, options.smoothing,
                       soft.defined() ? soft.data<T>() : nullptr};
    if (options.ignore) targets.ignore = *options.ignore;
    return targets;
  }
};

// Returns how many of them count.
int64_t check_labels(const Tensor& logits, const Tensor& labels, std::optional<int64_t> ignore = {}) {
  const Shape rows = logits.shape().without(-1);
  check(labels.defined() && labels.dtype() == DType::i64 && labels.shape() == rows &&
            labels.device() == logits.device(),
        "cross_entropy: logits ", logits.shape(), " on ", logits.device(), " take labels i64 ", rows,
        ", not ", labels.dtype(), " ", labels.shape(), " on ", labels.device());
  int64_t kept = labels.elements();
  dispatch(logits, "cross_entropy", [&]<class Dev, class T>() {
    const auto census =
        LabelKernels<Dev>::count(labels.elements(), logits.dim(-1), ignore, labels.data<int64_t>());
    kept = census.kept;
    if (const int64_t bad = census.first_bad; bad >= 0)
      fail("cross_entropy: label ", labels.integers()[static_cast<size_t>(bad)], " in row ", bad, ", logits ",
           logits.shape(), " have the classes 0 to ", logits.dim(-1) - 1);
  });
  return kept;
}

// The mean over `kept` rows, or by the options.
Tensor loss(const Tensor& x, const Aims& aims, const LossOptions& options, int64_t kept) {
  const double smoothing = options.smoothing;
  check(smoothing >= 0 && smoothing <= 1, "cross_entropy: smoothing ", smoothing, " is not in 0 .. 1");
  check(options.rows >= 0, "cross_entropy: rows ", options.rows, " is negative");
  const int64_t classes = x.dim(-1), rows = x.shape().elements(0, x.rank() - 1);
  const double divisor = static_cast<double>(options.rows > 0 ? options.rows : std::max<int64_t>(kept, 1));
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor y = Tensor::empty({}, x.dtype(), x.device());
  const Tensor max = Tensor::empty({rows}, wide, x.device()),
               log_sum = Tensor::empty({rows}, wide, x.device());
  dispatch(x, "cross_entropy", [&]<class Dev, class T>() {
    CrossEntropyKernels<Dev>::template forward<T>(rows, classes, x.data<T>(), aims.pointers<T>(options),
                                                  divisor, y.data<T>(), max.data<Wide<T>>(),
                                                  log_sum.data<Wide<T>>());
  });
  const auto backward = [=](Gradients& g) {
    const Written dx(g, 0);
    dispatch(x, "cross_entropy", [&]<class Dev, class T>() {
      CrossEntropyKernels<Dev>::template backward<T>(rows, classes, x.data<T>(), aims.pointers<T>(options),
                                                     divisor, max.data<Wide<T>>(), log_sum.data<Wide<T>>(),
                                                     g.dy().data<T>(), dx.data<T>(), dx.add());
    });
  };
  return record("cross_entropy", y, {x}, backward);
}

// Fails for `ignore` too, where targets are no plain labels.
void check_logits(const Tensor& logits, bool may_ignore, const LossOptions& options) {
  check(may_ignore || !options.ignore, "cross_entropy: rows are ignored by plain labels alone");
  check(logits.rank() > 0 && logits.elements() > 0, "cross_entropy: logits ", logits.shape(),
        "; at least one row of at least one class is wanted");
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const LossOptions& options) {
  check_logits(logits, true, options);
  const int64_t kept = check_labels(logits, labels, options.ignore);
  return loss(logits, {labels, {}, 1, {}}, options, kept);
}

Tensor cross_entropy_mixed(const Tensor& logits, const Tensor& labels_a, const Tensor& labels_b, double lam,
                           const LossOptions& options) {
  check_logits(logits, false, options);
  check_labels(logits, labels_a);
  check_labels(logits, labels_b);
  check(lam >= 0 && lam <= 1, "cross_entropy: lam ", lam, " is not in 0 .. 1");
  return loss(logits, {labels_a, labels_b, lam, {}}, options, labels_a.elements());
}

Tensor cross_entropy_soft(const Tensor& logits, const Tensor& targets, const LossOptions& options) {
  check_logits(logits, false, options);
  check(targets.dtype() == logits.dtype() && targets.shape() == logits.shape() &&
            targets.device() == logits.device(),
        "cross_entropy: logits ", logits.dtype(), " ", logits.shape(), " take soft targets alike, not ",
        targets.dtype(), " ", targets.shape());
  return loss(logits, {{}, {}, 1, targets.detach()}, options, targets.elements() / targets.dim(-1));
}

}  // namespace tessera
