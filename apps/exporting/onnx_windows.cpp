#include "apps/exporting/onnx_windows.h"

#include <algorithm>
#include <cstdlib>

namespace tessera {

namespace {

const std::vector<int64_t> channels_first{0, 3, 1, 2}, channels_last{0, 2, 3, 1};

std::vector<OnnxAttribute> window(const OnnxStep& s, int64_t groups) {
  const int64_t stride = s.whole("stride"), padding = s.whole("padding");
  return {{"kernel_shape", s.integers("kernel")},
          {"strides", std::vector<int64_t>{stride, stride}},
          {"pads", std::vector<int64_t>{padding, padding, padding, padding}},
          {"group", groups}};
}

}  // namespace

std::string onnx_conv(OnnxGraph& g, const OnnxStep& s) {
  const int64_t groups = s.op == "conv2d" ? 1 : s.shapes[0].back().size;
  std::vector<std::string> inputs{g.permute(s.inputs[0], channels_first), s.inputs[1]};
  if (s.has(2)) inputs.push_back(s.inputs[2]);
  return g.permute(g.node("Conv", inputs, window(s, groups)), channels_last);
}

// A depthwise convolution whose filters each read one pixel of the window. [B, H, W, C] -> [B, H' W', C k k]
std::string onnx_unfold(OnnxGraph& g, const OnnxStep& s) {
  const int64_t channels = s.shapes[0].back().size, high = s.integers("kernel")[0],
                wide = s.integers("kernel")[1], pixels = high * wide;
  std::vector<double> filters(static_cast<size_t>(channels * pixels * pixels));
  for (int64_t i = 0; i < channels * pixels; ++i) filters[static_cast<size_t>(i * pixels + i % pixels)] = 1;
  const Tensor weight = Tensor::from(filters, {channels * pixels, 1, high, wide});
  const std::string map =
      g.node("Conv", {g.permute(s.inputs[0], channels_first), g.constant(weight)}, window(s, channels));
  const OnnxShape rows{s.out[0], {-1}, s.out[2]};  // the shape of the map is of no interest
  return g.reshape(g.permute(map, channels_last), rows, s.out);
}

// In evaluation: the statistics are constants.
std::string onnx_batch_norm(OnnxGraph& g, const OnnxStep& s) {
  const std::vector<OnnxAttribute> attributes{{"epsilon", static_cast<float>(s.number("eps"))}};
  const std::string mean = g.constant(s.tensor("mean")), variance = g.constant(s.tensor("variance"));
  const auto norm = [&](const std::string& x) {
    return g.node("BatchNormalization", {x, s.inputs[1], s.inputs[2], mean, variance}, attributes);
  };
  if (s.out.size() == 4) return g.permute(norm(g.permute(s.inputs[0], channels_first)), channels_last);
  const OnnxShape rows{{-1}, s.out.back()};
  return g.reshape(norm(g.reshape(s.inputs[0], s.shapes[0], rows)), rows, s.out);
}

// Two products: with the rows' matrix [H', H], then the columns' [W', W]. [B, H, W, C] -> [B, H', W', C]
std::string onnx_resample(OnnxGraph& g, const OnnxStep& s) {
  const OnnxAxis images = s.shapes[0][0], wide = s.shapes[0][2], channels = s.shapes[0][3];
  const OnnxShape rows{images, s.shapes[0][1], {wide.size * channels.size}},
      tall{images, s.out[1], {wide.size * channels.size}}, map{images, s.out[1], wide, channels};
  const std::string flat = g.reshape(s.inputs[0], s.shapes[0], rows);
  const std::string stretched = g.node("MatMul", {g.constant(s.tensor("rows")), flat});
  return g.node("MatMul", {g.constant(s.tensor("columns")), g.reshape(stretched, tall, map)});
}

// The image padded with zeros, and a window of it for each copy.
std::string onnx_shifted_copies(OnnxGraph& g, const OnnxStep& s) {
  const auto& offsets = s.integers("offsets");  // dy, dx of each copy
  int64_t margin = 0;
  for (const int64_t offset : offsets) margin = std::max(margin, std::abs(offset));
  const std::string padded =
      g.node("Pad", {s.inputs[0], g.integers({0, 0, margin, margin, 0, 0, margin, margin})});
  const int64_t high = s.shapes[0][2].size, wide = s.shapes[0][3].size;
  std::vector<std::string> copies;
  for (size_t i = 0; i < offsets.size(); i += 2)
    copies.push_back(
        g.slice(g.slice(padded, 2, margin + offsets[i], high), 3, margin + offsets[i + 1], wide));
  return g.node("Concat", copies, {{"axis", int64_t{1}}});
}

// [B, C, H, W] -> [B, N, C P P]
std::string onnx_patches(OnnxGraph& g, const OnnxStep& s) {
  const bool shifts = s.op == "shifted_patches";
  const std::string image = shifts ? onnx_shifted_copies(g, s) : s.inputs[0];
  const int64_t size = s.whole("size"), channels = s.out[2].size / (size * size);
  OnnxShape whole = s.shapes[0];
  whole[1].size = channels;
  const OnnxAxis images = whole[0], high{whole[2].size / size}, wide{whole[3].size / size};
  const OnnxShape cut{images, {channels}, high, {size}, wide, {size}},
      sorted{images, high, wide, {channels}, {size}, {size}};
  return g.reshape(g.permute(g.reshape(image, whole, cut), {0, 2, 4, 1, 3, 5}), sorted, s.out);
}

}  // namespace tessera
