#pragma once

namespace tessera {

// The bytes that all threads read and write in a second where no cache holds them: the median of the repeats
// in 0.3 s of a += b for two arrays of 64 MiB, each of which moves three times as many.
double measure_memory_rate();

}  // namespace tessera
