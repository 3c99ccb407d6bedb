#pragma once

#include <cstdint>

#include "apps/training/config.h"
#include "apps/training/precision.h"

namespace tessera {

/// A batch for a run of `config`, whose model is a whole config, and why it is this one.
struct BatchChoice {
  int64_t batch = 1;
  int64_t step_bytes = 0;  ///< what a step of this batch takes, in f32
  int64_t free_bytes = 0;  ///< what is free on the device; 0: not known
  bool by_memory = false;  ///< whether memory set the limit; otherwise the number of pictures, or 1024
};

/// The largest power of two, 1024 at most, whose step takes at most four fifths of the free memory, and which
/// leaves at least 50 steps in an epoch of `images` pictures (a batch of 8 is allowed in any case). Steps are
/// measured by dry runs (footprint.h), which compute nothing. On a CPU the free memory is what the system
/// says and its control group allows; on a GPU memory is asked for and given back. Fails where one picture is
/// too much.
BatchChoice choose_batch(const TrainConfig& config, int64_t images, Device device);

/// How many images of a batch go through the config's model at once on such a device: its micro_batch, or
/// what `auto` means there. The model is a whole config.
int64_t images_at_once(const TrainConfig& config, int64_t batch, Device device);

/// What a step of such a batch takes in f32, in bytes, by a dry run: weights, gradients, moments,
/// activations, the moving average, and the pictures that the loader holds.
int64_t bytes_of_step(const TrainConfig& config, int64_t batch, Device device);

/// The memory that this process could take now without swapping: the system's MemAvailable, or less where a
/// control group says so. 0 where the system does not tell.
int64_t free_memory();

}  // namespace tessera
