#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/core/thread_scope.h"

#ifdef TESSERA_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tessera {

/// Computes with at most `count` threads from now on; 0 means all cores. Results do not depend on it. Holds
/// for the process. Fails for a negative count.
void set_threads(int count);
int threads();  ///< how many threads compute now

/// Tells the thread sanitizer, which cannot see into oneTBB's library, that all writes before release() are
/// visible after acquire(). Does nothing in other builds.
struct Handover {
#ifdef TESSERA_TSAN
  void release() { __tsan_release(this); }
  void acquire() { __tsan_acquire(this); }
#else
  void release() const {}
  void acquire() const {}
#endif
};

/// They call release() and acquire() at the end of a scope, even where an exception leaves it.
struct ReleasedAtEnd {
  Handover& handover;
  ~ReleasedAtEnd() { handover.release(); }
};
struct AcquiredAtEnd {
  Handover& handover;
  ~AcquiredAtEnd() { handover.acquire(); }
};

namespace detail {
inline std::atomic<int64_t> longest_chunk{std::numeric_limits<int64_t>::max()};
inline std::atomic<int64_t> split_loops{0};
}  // namespace detail

/// The chunk length that a kernel uses where it would choose `usual` steps of `width` elements each: less
/// within SmallChunks. A kernel calls it wherever any length gives a right result, though sums may round
/// differently.
inline int64_t chunk_length(int64_t usual, int64_t width = 1) {
  const int64_t longest = detail::longest_chunk.load(std::memory_order_relaxed);
  return std::min(usual, std::max<int64_t>(1, longest / std::max<int64_t>(1, width)));
}

/// For tests: while it lives, chunks have at most `longest` elements, so that the few elements of a test are
/// shared among threads as the many of a real run are. One at a time in the process.
class SmallChunks {
 public:
  explicit SmallChunks(int64_t longest);
  ~SmallChunks();
  SmallChunks(const SmallChunks&) = delete;
  SmallChunks& operator=(const SmallChunks&) = delete;

  /// The parallel loops since its construction that had more than one chunk.
  int64_t split_loops() const { return detail::split_loops.load(); }
};

/// While it lives, parallel_for() on its thread calls one chunk after the other there. It is for one who
/// shares the work among threads further out, such as by_image() (models/parts/by_image.h).
class SerialLoops : public ThreadScope<SerialLoops> {};

/// Calls f(begin, end) for each chunk of [0, n), in parallel and in any order. Chunks have exactly `grain`
/// elements, the last one fewer, so a chunk's sum is the same on any number of threads.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  const int64_t chunks = (n + grain - 1) / grain;
  if (chunks <= 1) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  if (detail::longest_chunk.load(std::memory_order_relaxed) < std::numeric_limits<int64_t>::max())
    ++detail::split_loops;
  if (SerialLoops::active()) {
    for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(n, begin + grain));
    return;
  }
  Handover start, end;
  start.release();
  const AcquiredAtEnd acquired{end};
  tbb::parallel_for(tbb::blocked_range<int64_t>(0, chunks), [&](const tbb::blocked_range<int64_t>& range) {
    start.acquire();
    const ReleasedAtEnd released{end};
    for (int64_t c = range.begin(); c < range.end(); ++c) f(c * grain, std::min(n, (c + 1) * grain));
  });
}

/// Sums f(begin, end) over the chunks of [0, n), in the order of the chunks: the same bits on any number of
/// threads.
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
