#pragma once

// Streams that run late and out of order. The work of a stream waits in its queue until the host waits for
// it, as it may on a GPU. Then either only what the host waits for runs, as late as can be, or first the work
// of all other streams, as early as can be, in turns: so an event that nobody waits for, pinned memory that
// is written again too early, and a number that is read before it has arrived give wrong results or NaN in
// one of the two.

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace emulator {

// Held while queues change and while work runs.
inline std::recursive_mutex running;

inline void refuse(const char* what) {
  std::fprintf(stderr, "emulator: %s\n", what);
  std::abort();
}

using Work = std::function<void()>;

// A capture: the work of the captured stream and of the streams that fork from it until they join again. One
// replay runs a fork's work in the order of the calls, the next one is late: it delays the work until its
// join, so that parts which depend on each other give different results.
struct Captured {
  enum class Kind { work, fork, join };
  struct Item {
    Kind kind;
    Work work;
  };
  std::vector<Item> items;
  std::vector<struct Stream*> forks;  // streams that have not joined yet
  bool late = false;

  void replay() const {
    std::vector<const Item*> waiting;
    for (const Item& item : items) {
      if (item.kind == Kind::join) {
        for (const Item* held : waiting) held->work();
        waiting.clear();
      } else if (item.kind == Kind::fork && late) {
        waiting.push_back(&item);
      } else {
        item.work();
      }
    }
  }
};

// One recording of an event.
struct Mark {
  struct Stream* stream = nullptr;
  std::chrono::steady_clock::time_point time;
  bool reached = false;
};

struct Stream {
  struct Item {
    Work work;                        // or
    std::shared_ptr<Mark> mark = {};  // an event recorded here, or
    std::shared_ptr<Mark> wait = {};  // an event that must be reached first
  };
  std::deque<Item> queue;
  Captured* captured = nullptr;
  bool forked = false;
  bool follows = true;  // whether a kernel may start early: the last work is a kernel of this stream

  void take(Work work, bool is_kernel) {
    const std::lock_guard lock(running);
    follows = is_kernel;
    if (captured)
      captured->items.push_back({forked ? Captured::Kind::fork : Captured::Kind::work, std::move(work)});
    else
      queue.push_back({std::move(work)});
  }

  // Runs the queue up to `last` (null: all of it), and what it waits for in other streams.
  void run(const Mark* last = nullptr) {
    while (!queue.empty() && !(last && last->reached)) {
      const Item item = std::move(queue.front());
      queue.pop_front();
      if (item.wait && !item.wait->reached) item.wait->stream->run(item.wait.get());
      if (item.work) item.work();
      if (item.mark) *item.mark = {this, std::chrono::steady_clock::now(), true};
    }
  }
};

// The mark of an event's last recording, and in which stream's capture it was.
struct Event {
  std::shared_ptr<Mark> mark = {};
  Stream* stream = nullptr;
  Captured* captured = nullptr;
};

inline std::set<Stream*> streams;
inline std::map<const char*, size_t> pinned;  // bytes of each block

inline bool is_pinned(const void* place) {
  const char* at = static_cast<const char*>(place);
  const auto after = pinned.upper_bound(at);
  return after != pinned.begin() && at < std::prev(after)->first + std::prev(after)->second;
}

inline void run_all() {
  for (Stream* stream : streams) stream->run();
}

// The host waits for a stream, or for a mark of it.
inline void wait_on_host(Stream* stream, const Mark* mark) {
  static bool others_first = false;
  others_first = !others_first;
  if (others_first)
    for (Stream* other : streams)
      if (other != stream) other->run();
  stream->run(mark);
}

}  // namespace emulator
