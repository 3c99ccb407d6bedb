#pragma once

// Ops of engine/ops/conv.h, batch_norm.h, patches.h and resample.h in ONNX operators. The engine has the
// channels of a map last, ONNX first: each op turns the map and turns it back, and OnnxGraph::permute leaves
// out what meets between two of them.

#include <string>

#include "apps/exporting/onnx_ops.h"

namespace tessera {

std::string onnx_conv(OnnxGraph& graph, const OnnxStep& step);
std::string onnx_unfold(OnnxGraph& graph, const OnnxStep& step);
std::string onnx_batch_norm(OnnxGraph& graph, const OnnxStep& step);
std::string onnx_resample(OnnxGraph& graph, const OnnxStep& step);
std::string onnx_shifted_copies(OnnxGraph& graph, const OnnxStep& step);
std::string onnx_patches(OnnxGraph& graph, const OnnxStep& step);  // of shifted copies too

}  // namespace tessera
