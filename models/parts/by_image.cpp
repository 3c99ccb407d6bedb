#include "models/parts/by_image.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "models/parts/attention.h"
#include "models/parts/decay_watch.h"

namespace tessera {

namespace {

// Fewer groups than this for each thread would leave threads waiting too long for the last group of another.
constexpr int64_t fewest_groups = 4;

// A thread's scopes hold on that thread alone, so layers that run within one cannot go to other threads.
bool stays_on_thread() {
  return ops_are_seen() || PlainAttention::active() || DecayWatch::active() || DryRun::active() ||
         SerialLoops::active();
}

Shape shape_of_one(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  const DryRun dry;
  const Tensor y = f(x.rows(0, 1));
  check(y.rank() > 0 && y.dim(0) == 1, "by_image: the layers made ", y.shape(), " of one image ",
        x.rows(0, 1).shape(), ", wanted [1, ...]");
  return y.shape();
}

}  // namespace

Tensor by_image(const Tensor& x, const Pass& pass, int64_t group,
                const std::function<Tensor(const Tensor&)>& f) {
  check(group >= 1, "by_image: groups of ", group, " images, wanted 1 or more");
  const int64_t images = x.dim(0);
  if (pass.training || stays_on_thread() || x.device() != Device::cpu ||
      images < fewest_groups * group * threads())
    return f(x);
  const Tensor y = Tensor::empty(shape_of_one(x, f).with(0, images), x.dtype());
  parallel_for(images, group, [&](int64_t begin, int64_t end) {
    const SerialLoops serial;
    y.rows(begin, end - begin).copy_from(f(x.rows(begin, end - begin)));
  });
  return y;
}

Tensor wide_by_image(const Tensor& x, const Pass& pass, int64_t group,
                     const std::function<Tensor(const Tensor&)>& f) {
  return x.dtype() == DType::bf16 ? f(x) : by_image(x, pass, group, f);
}

}  // namespace tessera
