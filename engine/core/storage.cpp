#include "engine/core/storage.h"

#include <oneapi/tbb/mutex.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/pool.h"

namespace tessera {

namespace {

std::atomic<bool> poison{false};

constexpr uint64_t no_set = 0;

// Keeps the blocks of one device that no storage uses, by their set (see BlockSet) and size. Threads that
// take images through a model side by side come here thousands of times a second, for less than a microsecond
// each: oneTBB's mutex spins as long, where the standard one would put them to sleep.
class Pool {
 public:
  explicit Pool(Device device) : device_(device) {}

  void* take(size_t bytes) {
    std::lock_guard lock(mutex_);
    void* block = nullptr;
    const bool constant = set_ != no_set && ConstantBlocks::active();
    const auto fit = constant ? waiting_.end() : find_waiting(bytes);
    if (fit != waiting_.end()) {
      block = fit->second.back();
      if (fit->first.bytes > bytes) larger_.emplace(block, fit->first.bytes);
      fit->second.pop_back();
    } else {
      block = ask_system(bytes);
    }
    if (set_ != no_set) home_.emplace(block, Home{set_, constant});
    stats_.in_use += bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    return block;
  }

  void give(void* block, size_t bytes) {
    std::lock_guard lock(mutex_);
    stats_.in_use -= bytes;
    if (const auto larger = larger_.extract(block)) bytes = larger.mapped();
    try {
      keep(block, bytes);
    } catch (const std::bad_alloc&) {  // there is no memory even to note it; a destructor may not fail
      if (!keeps_itself(bytes)) stats_.reserved -= bytes;
      backend(device_).release(block, bytes);
    }
  }

  uint64_t new_set() {
    std::lock_guard lock(mutex_);
    return ++sets_made_;
  }

  void use_set(uint64_t set) {
    std::lock_guard lock(mutex_);
    check(set == no_set || set_ == no_set, "memory: two sets of blocks are filled at once");
    set_ = set;
  }

  // Its blocks become usable by any storage; a block in use does so when its storage dies.
  void end_set(uint64_t set) {
    std::lock_guard lock(mutex_);
    std::erase_if(home_, [=](const auto& entry) { return entry.second.set == set; });
    for (auto at = waiting_.lower_bound({set, 0}); at != waiting_.end() && at->first.set == set;) {
      std::vector<void*>& of_no_set = waiting_[{no_set, at->first.bytes}];
      of_no_set.insert(of_no_set.end(), at->second.begin(), at->second.end());
      at = waiting_.erase(at);
    }
    const auto [first, last] = constants_.equal_range(set);
    for (auto at = first; at != last; ++at) waiting_[{no_set, at->second.first}].push_back(at->second.second);
    constants_.erase(first, last);
  }

  void release_waiting() {
    std::lock_guard lock(mutex_);
    release_all();
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    MemoryStats all = stats_;
    if (device_ == Device::cpu) {
      const DeviceBackend::Kept kept = cpu_backend().kept();
      all.reserved += kept.bytes;
      all.system_allocations += kept.allocations;
    }
    return all;
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.in_use;
  }

 private:
  struct Key {
    uint64_t set;
    size_t bytes;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
  };
  // A size keeps its place when its last block is taken, because the sizes of a model come back at every
  // step.
  using Waiting = std::map<Key, std::vector<void*>>;

  // The call returns the place of blocks of this size or, where there is none, of the next larger size of no
  // set; on a CPU a quarter larger at most, because there stochastic depth leaves out other images at every
  // step, so that sizes rarely come back. Places without blocks that it passes are given up.
  Waiting::iterator find_waiting(size_t bytes) {
    if (const auto fit = waiting_.find({set_, bytes}); fit != waiting_.end() && !fit->second.empty())
      return fit;
    const size_t most = device_ == Device::cpu ? bytes + bytes / 4 : bytes;
    auto fit = waiting_.lower_bound({no_set, bytes});
    while (fit != waiting_.end() && fit->first.set == no_set && fit->first.bytes <= most) {
      if (!fit->second.empty()) return fit;
      fit = waiting_.erase(fit);
    }
    return waiting_.end();
  }

  void keep(void* block, size_t bytes) {
    const auto home = home_.find(block);
    if (home == home_.end() && keeps_itself(bytes)) {
      backend(device_).release(block, bytes);
    } else if (home == home_.end()) {
      waiting_[{no_set, bytes}].push_back(block);
    } else if (home->second.constant) {
      constants_.emplace(home->second.set, std::pair(bytes, block));
    } else {
      waiting_[{home->second.set, bytes}].push_back(block);
    }
  }

  void* ask_system(size_t bytes) {
    void* block = nullptr;
    try {
      block = backend(device_).allocate(bytes);
    } catch (const Error&) {
      if (set_ != no_set) throw;  // while a GPU's step is captured nothing goes back to the driver
      release_all();              // other sizes may hold what is missing
      block = backend(device_).allocate(bytes);
    }
    if (keeps_itself(bytes)) return block;
    stats_.reserved += bytes;
    ++stats_.system_allocations;
    return block;
  }

  // The device's backend may keep and count the memory of such blocks itself.
  bool keeps_itself(size_t bytes) const { return device_ == Device::cpu && cpu_backend().keeps(bytes); }

  void release_all() {  // but for the blocks of sets
    for (auto at = waiting_.begin(); at != waiting_.end() && at->first.set == no_set;) {
      while (!at->second.empty()) {
        void* const block = at->second.back();
        at->second.pop_back();  // before release(), which may fail
        stats_.reserved -= at->first.bytes;
        backend(device_).release(block, at->first.bytes);
      }
      at = waiting_.erase(at);
    }
    if (device_ == Device::cpu) cpu_backend().trim();
  }

  struct Home {
    uint64_t set;
    bool constant;
  };

  Device device_;
  tbb::mutex mutex_;
  Waiting waiting_;
  std::unordered_map<void*, size_t> larger_;                     // sizes of blocks that exceed their storages
  std::unordered_map<void*, Home> home_;                         // where each block of a set belongs
  std::multimap<uint64_t, std::pair<size_t, void*>> constants_;  // unused, kept until their set ends
  uint64_t set_ = no_set, sets_made_ = no_set;                   // set_ is filled now
  MemoryStats stats_;
};

// Never destroyed: storages of static life may outlast any order of destruction.
Pool& pool(Device device) {
  static Pool& cpu = *new Pool(Device::cpu);
  static Pool& cuda = *new Pool(Device::cuda);
  return device == Device::cpu ? cpu : cuda;
}

constexpr size_t granule = 512;  // bytes; sizes are rounded up to it, so that similar sizes share blocks

}  // namespace

Storage::Storage(Device device, size_t bytes)
    : device_(device), bytes_((std::max<size_t>(bytes, 1) + granule - 1) / granule * granule) {
  if (!DryRun::active()) require(device);
  block_ = pool(where_memory_is(device)).take(bytes_);
  if (poison && device == Device::cpu) std::memset(block_, 0xff, bytes_);
}

Storage::~Storage() { pool(where_memory_is(device_)).give(block_, bytes_); }

BlockSet::BlockSet(Device device) : device_(device), number_(pool(device).new_set()) {}
BlockSet::~BlockSet() { pool(device_).end_set(number_); }
void BlockSet::begin() const { pool(device_).use_set(number_); }
void BlockSet::end() const { pool(device_).use_set(no_set); }

MemoryStats memory_stats(Device device) { return pool(device).stats(); }
void reset_peak(Device device) { pool(device).reset_peak(); }
void release_cached(Device device) { pool(device).release_waiting(); }
void poison_new_storage(bool on) { poison = on; }

}  // namespace tessera
