#include "engine/ops/conv.h"

#include "engine/check/op_case.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/shape.h"
#include "engine/ops/take.h"

namespace tessera {

namespace {

using In = std::span<const Tensor>;

// Axis `axis` of x with `padding` zeros before and after it.
Tensor padded(const Tensor& x, int axis, int64_t padding) {
  if (padding == 0) return x;
  const Tensor zeros = Tensor::zeros(x.shape().with(axis, padding), x.dtype(), x.device());
  return concat({zeros, x, zeros}, axis);
}

// The windows of a map, from recorded ops: tap (u, v) of all of them is [B, H', W', C].
struct PlainWindows {
  Tensor map;  // padded
  int64_t stride, kernel_h, kernel_w;

  PlainWindows(const Tensor& x, int64_t h, int64_t w, const ConvOptions& options)
      : map(padded(padded(x, 1, options.padding), 2, options.padding)),
        stride(options.stride),
        kernel_h(h),
        kernel_w(w) {}

  Tensor tap(int64_t u, int64_t v) const {
    return take(take(map, 1, every_step(u, map.dim(1) - kernel_h)), 2, every_step(v, map.dim(2) - kernel_w));
  }

 private:
  Tensor every_step(int64_t first, int64_t last) const {
    std::vector<int64_t> index;
    for (int64_t i = 0; i <= last; i += stride) index.push_back(first + i);
    return Tensor::from(index, {static_cast<int64_t>(index.size())});
  }
};

// The sum over the taps of product(tap, its weights [O, C]), plus the bias.
template <class Product> Tensor plain(In in, const ConvOptions& options, Product product) {
  const Tensor& weight = in[1];
  const PlainWindows windows(in[0], weight.dim(2), weight.dim(3), options);
  Tensor y = in[2];
  for (int64_t u = 0; u < weight.dim(2); ++u)
    for (int64_t v = 0; v < weight.dim(3); ++v) {
      const Tensor of_tap = slice(slice(weight, 2, u, 1), 3, v, 1).reshape({weight.dim(0), weight.dim(1)});
      y = product(windows.tap(u, v), of_tap) + y;
    }
  return y;
}

Tensor plain_conv(In in, const ConvOptions& options) {
  return plain(in, options, [](const Tensor& tap, const Tensor& w) { return matmul(tap, w, false, true); });
}

// Output channel o reads input channel o / m.
Tensor plain_depthwise(In in, const ConvOptions& options) {
  const int64_t out = in[1].dim(0), m = out / in[0].dim(3);
  std::vector<int64_t> channels;
  for (int64_t o = 0; o < out; ++o) channels.push_back(o / m);
  const Tensor index = Tensor::from(channels, {out});
  return plain(in, options,
               [&](const Tensor& tap, const Tensor& w) { return take(tap, 3, index) * w.reshape({out}); });
}

Tensor plain_unfold(const Tensor& x, int64_t kernel, const ConvOptions& options) {
  const PlainWindows windows(x, kernel, kernel, options);
  std::vector<Tensor> taps;
  for (int64_t k = 0; k < kernel * kernel; ++k) {
    const Tensor tap = windows.tap(k / kernel, k % kernel);
    taps.push_back(tap.reshape({x.dim(0), tap.dim(1) * tap.dim(2), x.dim(3), 1}));
  }
  return concat(taps, 3).reshape({x.dim(0), taps[0].dim(1), x.dim(3) * kernel * kernel});
}

OpCase convolution(const char* op, const char* variant, bool depthwise, const Shape& x, const Shape& weight,
                   ConvOptions options) {
  return {op,
          variant,
          {random_tensor(x, 1), random_tensor(weight, 2), random_tensor({weight[0]}, 3)},
          [=](In in) {
            return depthwise ? depthwise_conv2d(in[0], in[1], in[2], options)
                             : conv2d(in[0], in[1], in[2], options);
          },
          [=](In in) { return depthwise ? plain_depthwise(in, options) : plain_conv(in, options); }};
}

}  // namespace

OpCases conv_cases() {
  const ConvOptions strided{.stride = 2, .padding = 1};
  return {convolution("conv2d", "3 x 3, padded", false, {2, 5, 4, 3}, {4, 3, 3, 3}, {1, 1}),
          convolution("conv2d", "stride 2", false, {3, 7, 6, 2}, {3, 2, 3, 3}, {2, 1}),
          convolution("conv2d", "patches, rectangular", false, {2, 4, 6, 2}, {5, 2, 2, 3}, {2, 0}),
          convolution("conv2d", "patches that tile the map", false, {3, 4, 6, 3}, {5, 3, 2, 2}, {2, 0}),
          convolution("conv2d", "patches that leave a row", false, {2, 5, 6, 2}, {3, 2, 2, 2}, {2, 0}),
          convolution("conv2d", "patches that leave a column", false, {2, 4, 5, 2}, {3, 2, 2, 2}, {2, 0}),
          convolution("conv2d", "padded beyond the window", false, {2, 3, 2, 2}, {3, 2, 2, 2}, {1, 2}),
          convolution("conv2d", "many channels", false, {2, 4, 3, 20}, {34, 20, 2, 2}, {1, 1}),
          convolution("conv2d", "many rows at once", false, {17, 20, 16, 1}, {1, 1, 2, 2}, {1, 0}),
          convolution("conv2d", "every third pixel", false, {2, 4, 7, 4}, {5, 4, 1, 1}, {3, 0}),
          convolution("conv2d", "wide rows", false, {17, 1, 147, 1}, {3, 1, 1, 3}, {1, 1}),
          convolution("conv2d", "minimal filtering", false, {2, 6, 8, 16}, {32, 16, 3, 3}, {1, 1}),
          convolution("conv2d", "minimal filtering, odd, without padding", false, {2, 9, 7, 32},
                      {16, 32, 3, 3}, {1, 0}),
          convolution("conv2d", "minimal filtering, padded beyond the window", false, {3, 3, 4, 16},
                      {48, 16, 3, 3}, {1, 2}),
          convolution("conv2d", "minimal filtering, bf16 too", false, {1, 5, 7, 32}, {32, 32, 3, 3}, {1, 1}),
          convolution("depthwise_conv2d", "", true, {2, 5, 4, 3}, {3, 1, 3, 3}, {1, 1}),
          convolution("depthwise_conv2d", "two filters a channel, stride 2", true, {2, 5, 4, 3}, {6, 1, 3, 3},
                      {2, 1}),
          convolution("depthwise_conv2d", "5 x 5", true, {17, 3, 4, 2}, {2, 1, 5, 5}, {1, 2}),
          {"unfold",
           "",
           {random_tensor({2, 5, 4, 3}, 1)},
           [=](In in) { return unfold(in[0], 3, strided); },
           [=](In in) { return plain_unfold(in[0], 3, strided); }}};
}

}  // namespace tessera
