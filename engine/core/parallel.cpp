#include "engine/core/parallel.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <utility>

#include "engine/core/error.h"

namespace tessera {

void set_threads(int count) {
  check(count >= 0, "threads: ", count, " is negative; 0 means all cores");
  // The last one outlives the program: where TBB got no memory for its threads, it keeps a lock, and a
  // destructor would wait for that for ever.
  static tbb::global_control* limit = nullptr;
  delete std::exchange(limit, nullptr);
  if (count > 0)
    limit = new tbb::global_control(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(count));
}

SmallChunks::SmallChunks(int64_t longest) {
  check(longest > 0, "SmallChunks: a chunk of ", longest, " elements; at least 1 is needed");
  check(detail::longest_chunk == std::numeric_limits<int64_t>::max(), "SmallChunks: another one is alive");
  detail::split_loops = 0;
  detail::longest_chunk = longest;
}

SmallChunks::~SmallChunks() { detail::longest_chunk = std::numeric_limits<int64_t>::max(); }

int threads() {
  const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::min(static_cast<int>(allowed), tbb::this_task_arena::max_concurrency());
}

}  // namespace tessera
