#pragma once

#include <doctest/doctest.h>

#include <string>

#include "engine/core/device.h"
#include "engine/core/error.h"

// Whether this build has CUDA and this machine a GPU (or the emulator in its place); says so where not.
inline bool cuda_here() {
  try {
    tessera::require(tessera::Device::cuda);
    return true;
  } catch (const tessera::Error& error) {
    MESSAGE("skipped: " << std::string(error.what()));
    return false;
  }
}
