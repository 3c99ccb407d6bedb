#include "engine/core/storage.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "engine/core/error.h"
#include "engine/core/memory.h"

namespace tessera {

namespace {

std::atomic<bool> poison{false};

// The blocks of one device that no storage holds, by size.
class Pool {
 public:
  explicit Pool(Device device) : device_(device) {}

  void* take(size_t bytes) {
    std::lock_guard lock(mutex_);
    void* block = nullptr;
    if (const auto fit = waiting_.find(bytes); fit != waiting_.end()) {
      block = fit->second;
      waiting_.erase(fit);
    } else {
      block = ask_system(bytes);
    }
    stats_.in_use += bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    return block;
  }

  void give(void* block, size_t bytes) {
    std::lock_guard lock(mutex_);
    stats_.in_use -= bytes;
    waiting_.emplace(bytes, block);
  }

  void release_waiting() {
    std::lock_guard lock(mutex_);
    release_all();
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.in_use;
  }

 private:
  void* ask_system(size_t bytes) {
    void* block = nullptr;
    try {
      block = allocate(bytes);
    } catch (const Error&) {
      release_all();  // other sizes may hold what is missing
      block = allocate(bytes);
    }
    stats_.reserved += bytes;
    ++stats_.system_allocations;
    return block;
  }

  void release_all() {
    for (const auto& [bytes, block] : waiting_) {
      stats_.reserved -= bytes;
      release(block, bytes);
    }
    waiting_.clear();
  }

  void* allocate(size_t bytes) const {
#ifdef TESSERA_CUDA
    if (device_ == Device::cuda) return Memory<Cuda>::allocate(bytes);
#endif
    return Memory<Cpu>::allocate(bytes);
  }

  void release(void* block, size_t bytes) const {
#ifdef TESSERA_CUDA
    if (device_ == Device::cuda) return Memory<Cuda>::release(block, bytes);
#endif
    Memory<Cpu>::release(block, bytes);
  }

  [[maybe_unused]] Device device_;  // read where there is CUDA
  std::mutex mutex_;
  std::multimap<size_t, void*> waiting_;
  MemoryStats stats_;
};

// Never destroyed: storages of static life may outlast any order of destruction.
Pool& pool(Device device) {
  static Pool& cpu = *new Pool(Device::cpu);
  static Pool& cuda = *new Pool(Device::cuda);
  return device == Device::cpu ? cpu : cuda;
}

constexpr size_t granule = 512;  // sizes are rounded up to it, so that near equals share blocks

}  // namespace

Storage::Storage(Device device, size_t bytes)
    : device_(device), bytes_((std::max<size_t>(bytes, 1) + granule - 1) / granule * granule) {
  require(device);
  block_ = pool(device).take(bytes_);
  if (poison && device == Device::cpu) std::memset(block_, 0xff, bytes_);
}

Storage::~Storage() { pool(device_).give(block_, bytes_); }

MemoryStats memory_stats(Device device) { return pool(device).stats(); }
void reset_peak(Device device) { pool(device).reset_peak(); }
void release_cached(Device device) { pool(device).release_waiting(); }
void poison_new_storage(bool on) { poison = on; }

}  // namespace tessera
