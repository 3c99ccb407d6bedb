#include "engine/ops/loss.h"

#include <algorithm>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/loss_kernels.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

// The targets as tensors; undefined ones are not used.
struct LossTargets {
  Tensor a, b;
  double lam = 1;
  Tensor soft;
  Tensor kept = {};  // [1] i64: the number of rows that count, where some may be ignored

  LossDivisor divisor(const LossOptions& options, int64_t rows) const {
    return {static_cast<double>(options.rows > 0 ? options.rows : rows),
            options.rows == 0 && kept.defined() ? kept.data<int64_t>() : nullptr};
  }

  double divisor_now(const LossOptions& options, int64_t rows) const {
    const LossDivisor divided = divisor(options, rows);
    return divided.kept ? std::max<double>(1, static_cast<double>(kept.integers().front())) : divided.rows;
  }

  // The share of each class in each row's target, smoothed; 0 in a row that is ignored. [rows, classes]
  Tensor shares(int64_t rows, int64_t classes, const LossOptions& options) const {
    std::vector<double> all(static_cast<size_t>(rows * classes));
    if (soft.defined()) all = soft.values();
    const auto add = [&](const Tensor& labels, double share) {
      if (!labels.defined()) return;
      const std::vector<int64_t> of = labels.integers();
      for (int64_t i = 0; i < rows; ++i)
        if (const int64_t label = of[static_cast<size_t>(i)]; !options.ignore || label != *options.ignore)
          all[static_cast<size_t>(i * classes + label)] += share;
    };
    add(a, lam);
    add(b, 1 - lam);
    for (int64_t i = 0; i < rows && !soft.defined(); ++i) {
      double total = 0;
      for (int64_t k = 0; k < classes; ++k) total += all[static_cast<size_t>(i * classes + k)];
      if (total == 0) continue;
      for (int64_t k = 0; k < classes; ++k) {
        double& share = all[static_cast<size_t>(i * classes + k)];
        share = (1 - options.smoothing) * share + options.smoothing / static_cast<double>(classes);
      }
    }
    return Tensor::from(all, {rows, classes}, DType::f64);
  }

  template <class T> Targets<T> pointers(const LossOptions& options) const {
    const auto labels = [](const Tensor& x) { return x.defined() ? x.data<int64_t>() : nullptr; };
    Targets<T> targets{labels(a), labels(b), lam, options.smoothing,
                       soft.defined() ? soft.data<T>() : nullptr};
    if (options.ignore) targets.ignore = *options.ignore;
    return targets;
  }
};

// Fails unless the labels fit the logits. kept [1] i64, if defined, receives how many are not ignored.
void check_labels(const Tensor& logits, const Tensor& labels, std::optional<int64_t> ignore = {},
                  const Tensor& kept = {}) {
  const Shape rows = logits.shape().without(-1);
  check(labels.defined() && labels.dtype() == DType::i64 && labels.shape() == rows, "cross_entropy: logits ",
        logits.shape(), " take labels i64 ", rows, ", not ", labels.dtype(), " ", labels.shape());
  check_same_device("cross_entropy", {logits, labels});
  dispatch(logits, "cross_entropy", [&]<class Dev, class T>() {
    const int64_t bad =
        LabelKernels<Dev>::first_bad(labels.elements(), logits.dim(-1), ignore, labels.data<int64_t>(),
                                     kept.defined() ? kept.data<int64_t>() : nullptr);
    if (bad >= 0)
      fail("cross_entropy: label ", labels.integers()[static_cast<size_t>(bad)], " in row ", bad, ", logits ",
           logits.shape(), " have the classes 0 to ", logits.dim(-1) - 1);
  });
}

// The sum over the rows divided by options.rows or, where that is 0, by the number of rows that count.
Tensor loss(const Tensor& x, const LossTargets& targets, const LossOptions& options) {
  const double smoothing = options.smoothing;
  check(smoothing >= 0 && smoothing <= 1, "cross_entropy: smoothing ", smoothing, " is not in 0 .. 1");
  check(options.rows >= 0, "cross_entropy: rows ", options.rows, " is negative");
  const int64_t classes = x.dim(-1), rows = x.shape().elements(0, x.rank() - 1);
  const Tensor y = Tensor::empty({}, wide(x.dtype()), x.device());
  const Tensor max = Tensor::empty({rows}, wide(x.dtype()), x.device()),
               log_sum = Tensor::empty({rows}, wide(x.dtype()), x.device());
  dispatch(x, "cross_entropy", [&]<class Dev, class T>() {
    CrossEntropyKernels<Dev>::template forward<T>({rows, classes}, x.data<T>(), targets.pointers<T>(options),
                                                  targets.divisor(options, rows), y.data<Wide<T>>(),
                                                  max.data<Wide<T>>(), log_sum.data<Wide<T>>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(x, "cross_entropy", [&]<class Dev, class T>() {
      CrossEntropyKernels<Dev>::template backward<T>(
          {rows, classes}, x.data<T>(), targets.pointers<T>(options), targets.divisor(options, rows),
          max.data<Wide<T>>(), log_sum.data<Wide<T>>(), g.dy().data<Wide<T>>(), dx.target<T>());
    });
  };
  const Tensor made = record("cross_entropy", y, {x}, backward);
  describe_step(made, [&] {
    return Attributes{{"targets", targets.shares(rows, classes, options)},
                      {"divisor", targets.divisor_now(options, rows)}};
  });
  return made;
}

// Fails for logits without a row or class, and for `ignore` with targets that are not plain labels.
void check_logits(const Tensor& logits, bool may_ignore, const LossOptions& options) {
  check(may_ignore || !options.ignore, "cross_entropy: rows are ignored by plain labels alone");
  check(logits.rank() > 0 && logits.elements() > 0, "cross_entropy: logits ", logits.shape(),
        "; at least one row of at least one class is wanted");
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const LossOptions& options) {
  check_logits(logits, true, options);
  const Tensor kept = options.ignore ? Tensor::empty({1}, DType::i64, logits.device()) : Tensor();
  check_labels(logits, labels, options.ignore, kept);
  return loss(logits, {labels, {}, 1, {}, kept}, options);
}

Tensor cross_entropy_mixed(const Tensor& logits, const Tensor& labels_a, const Tensor& labels_b, double lam,
                           const LossOptions& options) {
  check_logits(logits, false, options);
  check_labels(logits, labels_a);
  check_labels(logits, labels_b);
  check(lam >= 0 && lam <= 1, "cross_entropy: lam ", lam, " is not in 0 .. 1");
  return loss(logits, {labels_a, labels_b, lam, {}}, options);
}

Tensor cross_entropy_soft(const Tensor& logits, const Tensor& targets, const LossOptions& options) {
  check_logits(logits, false, options);
  check(targets.dtype() == logits.dtype() && targets.shape() == logits.shape(), "cross_entropy: logits ",
        logits.dtype(), " ", logits.shape(), " take soft targets of the same type and shape, not ",
        targets.dtype(), " ", targets.shape());
  check_same_device("cross_entropy", {logits, targets});
  return loss(logits, {{}, {}, 1, targets.detach()}, options);
}

}  // namespace tessera
