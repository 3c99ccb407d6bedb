#pragma once

#include <functional>

#include "engine/core/tensor.h"
#include "engine/nn/pass.h"

namespace tessera {

/// f(x) for layers f that treat every image by itself, as all but a batch norm in training do. x [B, ...] ->
/// [B, ...], with the bits of f(x).
///
/// Each thread takes `group` images at a time through all of f: what one layer leaves for the next is then
/// small enough for the core's own cache, and threads wait for one another once instead of after every loop.
/// f runs on all images at once in training, where a tape records, where somebody watches (Observer,
/// PlainAttention, DecayWatch), in a dry run, under SerialLoops, on another device than the CPU, and where
/// the batch has fewer than four groups for each thread.
///
/// Fails for a group below 1, and if f makes anything but one entry of one image.
Tensor by_image(const Tensor& x, const Pass& pass, int64_t group,
                const std::function<Tensor(const Tensor&)>& f);

/// by_image() in f32 and f64, and f(x) in bf16, whose faster products make reading the weights anew for every
/// group cost more than it gains (measured with PiT and ResNet).
Tensor wide_by_image(const Tensor& x, const Pass& pass, int64_t group,
                     const std::function<Tensor(const Tensor&)>& f);

}  // namespace tessera
