#include "engine/ops/dropout.h"

#include "engine/check/op_case.h"
#include "engine/core/random.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// 1 / (1 - p) where word(i), a number in [0, 1), is at least p, otherwise 0.
template <class Word> Tensor factors(const Shape& shape, double p, const Tensor& like, Word word) {
  Tensor mask = Tensor::empty(shape, DType::f64);
  for (int64_t i = 0; i < mask.elements(); ++i)
    mask.data<double>()[i] =
        unit_float(word(static_cast<uint64_t>(i))) >= static_cast<float>(p) ? 1 / (1 - p) : 0;
  return beside(mask, like);
}

Tensor plain_dropout(const Tensor& x, double p, uint64_t key) {
  return x * factors(x.shape(), p, x, [=](uint64_t i) { return philox(key, i / 4)[i % 4]; });
}

Tensor plain_drop_path(const Tensor& x, const Tensor& f, double p, uint64_t key) {
  Shape one_each = x.shape();
  for (int i = 1; i < x.rank(); ++i) one_each = one_each.with(i, 1);
  return x + f * factors(one_each, p, x, [=](uint64_t image) { return philox(key, image)[0]; });
}

// The images of a branch at their places in a batch, zeros at the others.
Tensor spread(const Tensor& f, const Tensor& images, int64_t batch) {
  Tensor places = Tensor::zeros({batch, images.elements()}, DType::f64);
  for (int64_t r = 0; r < images.elements(); ++r)
    places.data<double>()[images.integers()[static_cast<size_t>(r)] * images.elements() + r] = 1;
  const Tensor rows = f.reshape({f.dim(0), -1});
  return matmul(beside(places, f), rows).reshape(f.shape().with(0, batch));
}

// The op on a branch that was computed of the images that keep it, and the whole branch of which it is a
// part.
OpCase of_kept_images(const char* variant, double p, uint64_t key) {
  const Tensor x = random_tensor({9, 3, 11}, 1), f = random_tensor({9, 3, 11}, 2),
               images = kept_images(9, p, key);
  return {"drop_path",
          variant,
          {x, take(f, 0, images)},
          [=](In in) {
            return drop_path(in[0], in[1], {p, key, images});
          },
          [=](In in) { return plain_drop_path(in[0], spread(in[1], images, 9), p, key); }};
}

}  // namespace

OpCases dropout_cases() {
  const Tensor x = random_tensor({9, 3, 11}, 1), f = random_tensor({9, 3, 11}, 2);
  OpCase residual{"drop_path",
                  "residual",
                  {x, f},
                  [](In in) { return drop_path(in[0], in[1], {}); },
                  [](In in) { return in[0] + in[1]; }};
  residual.unsplit_backward = "both gradients are dy itself";
  return {
      {"dropout",
       "",
       {x},
       [](In in) { return dropout(in[0], 0.3, 5); },
       [](In in) { return plain_dropout(in[0], 0.3, 5); }},
      {"multiply", "by a dropout of channels", {x}, [](In in) { return channel_dropout(in[0], 0.3, 5); }},
      {"drop_path",
       "",
       {x, f},
       [](In in) {
         return drop_path(in[0], in[1], {0.4, 6});
       },
       [](In in) { return plain_drop_path(in[0], in[1], 0.4, 6); }},
      of_kept_images("of the images that keep it", 0.4, 6),
      of_kept_images("of an image that drops it", 0.99, 6),
      residual,
      {"drop_path",
       "of itself",
       {x},
       [](In in) {
         return drop_path(in[0], in[0], {0.4, 6});
       },
       [](In in) { return plain_drop_path(in[0], in[0], 0.4, 6); }},
  };
}

}  // namespace tessera
