#include "engine/core/parallel.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <memory>

#include "engine/core/error.h"

namespace tessera {

void set_threads(int count) {
  check(count >= 0, "threads: ", count, " is negative; 0 means all cores");
  static std::unique_ptr<tbb::global_control> limit;
  limit.reset();
  if (count > 0)
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                  static_cast<size_t>(count));
}

int threads() {
  const auto allowed = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::min(static_cast<int>(allowed), tbb::this_task_arena::max_concurrency());
}

}  // namespace tessera
