#pragma once

// The parts of the CUDA backend (backend.cpp) that have files of their own. graph.h and blas.h have the rest.

#include <cstdint>
#include <memory>

#include "engine/core/dtype.h"
#include "engine/core/lap_clock.h"
#include "engine/core/read_back.h"

namespace tessera {

// Convert and fill arrays of n numbers in device memory: DeviceBackend::convert and fill (convert.cu).
void convert_on_cuda(int64_t n, DType from_type, const void* from, DType to_type, void* to);
void fill_on_cuda(int64_t n, double value, DType type, void* to);

std::unique_ptr<LapClock> make_stream_clock();      // measures by events on the stream (lap_clock.cpp)
std::unique_ptr<ReadBack> make_pinned_read_back();  // copies into pinned memory (read_back.cpp)

}  // namespace tessera
