#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#ifdef TESSERA_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tessera {

// At most this many threads compute from now on; 0 is all cores. Results do not depend on it.
void set_threads(int count);
int threads();

// The thread sanitizer cannot see into oneTBB's library, so it is told that what came before release() is
// seen after acquire(). Nothing in other builds.
struct Handover {
#ifdef TESSERA_TSAN
  void release() { __tsan_release(this); }
  void acquire() { __tsan_acquire(this); }
#else
  void release() const {}
  void acquire() const {}
#endif
};

// f(begin, end) for [0, n) cut into chunks of exactly `grain` (the last one shorter), in any order and in
// parallel. The cut depends on n and grain alone, so what a chunk sums is the same on any thread count.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  const int64_t chunks = (n + grain - 1) / grain;
  if (chunks <= 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  Handover start, end;
  start.release();
  tbb::parallel_for(tbb::blocked_range<int64_t>(0, chunks), [&](const tbb::blocked_range<int64_t>& range) {
    start.acquire();
    for (int64_t c = range.begin(); c < range.end(); ++c) f(c * grain, std::min(n, (c + 1) * grain));
    end.release();
  });
  end.acquire();
}

// The sum over chunks of f(begin, end), added in the order of the chunks: the same bits on any thread count.
template <class Sum, class F> Sum parallel_sum(int64_t n, int64_t grain, F&& f) {
  std::vector<Sum> parts(static_cast<size_t>((n + grain - 1) / grain));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    parts[static_cast<size_t>(begin / grain)] = f(begin, end);
  });
  Sum total{};
  for (const Sum& part : parts) total += part;
  return total;
}

}  // namespace tessera
