#pragma once

#include <cstdint>

#include "engine/core/device.h"
#include "engine/core/dtype.h"

namespace tessera {

/// Where a loader's batches are delivered. For a GPU they are made on it: the host draws the augmentations, a
/// stream beside the training step's applies them (data/feed.h). The pixels equal those that the CPU makes.
struct DeliveryOptions {
  Device device = Device::cpu;
  DType dtype = DType::f32;  ///< of the images; bf16 only on a GPU
  bool resident = true;      ///< keep the data set in device memory if it fits
  int64_t classes = 0;       ///< of Batch::shares; 0: no shares
};

}  // namespace tessera
