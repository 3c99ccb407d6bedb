#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "apps/training/checkpoint.h"

namespace tessera {

struct SampleOptions;  // models/diffusion.h

// Many samples for a file. Sample i depends on the seed and i alone: its class, where `classes` does not give
// it, and all its noise are drawn from a stream of its own. On a CPU the batch changes no bit of it, on a GPU
// it may change the last digits.
struct SampleSet {
  int64_t count = 0;
  std::vector<int64_t> classes = {};  // taken in turn; empty: drawn, all equally likely
  uint64_t seed = 0;
  int64_t batch = 32;  // samples at once
};

// Draws the set and writes an .npz as the evaluation of Dhariwal and Nichol (2021) reads it: arr_0, the
// samples, pictures as bytes [N, H, W, 3], latents as they are stored in a data set, before its scale, f32
// [N, C, H, W]; and arr_1, their classes, i64 [N]. What is drawn is kept in PATH.partial meanwhile, from
// which the same call goes on after a break, with the same bytes in the end; a longer one goes on too.
// on_progress(samples done) is called after each batch. Fails for a checkpoint of another kind of model, and
// where PATH.partial is of another checkpoint, seed or way of sampling (on a GPU, of another batch).
void write_samples(const Checkpoint& checkpoint, const SampleSet& set, const SampleOptions& how,
                   Device device, const std::filesystem::path& path,
                   const std::function<void(int64_t)>& on_progress = {});

}  // namespace tessera
