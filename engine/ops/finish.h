#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

// What follows an op on the CPU, computed for a part of its output y while that lies in the cache: the call
// says that the numbers [begin, end) of y, whole rows, are written.
using Finish = std::function<void(int64_t begin, int64_t end)>;

}  // namespace tessera
