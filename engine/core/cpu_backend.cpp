#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "engine/core/convert_kernels.h"
#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/lap_clock.h"
#include "engine/core/large_blocks.h"
#include "engine/core/read_back.h"
#include "engine/core/replay.h"

namespace tessera {

namespace {

constexpr size_t not_written = size_t{2} << 20;   // bytes from which a dry run leaves a block as it is
constexpr size_t counted_only = size_t{1} << 28;  // bytes from which a dry run takes addresses alone

#ifdef TESSERA_SANITIZED  // a sanitizer watches what malloc gives
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

class HostClock final : public LapClock {
 public:
  void mark() override { marks_.push_back(Clock::now()); }

  std::vector<double> laps() override {
    std::vector<double> seconds;
    for (size_t i = 1; i < marks_.size(); ++i)
      seconds.push_back(std::chrono::duration<double>(marks_[i] - marks_[i - 1]).count());
    marks_.clear();
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> marks_;
};

class CopiesOnHost final : public ReadBack {
 public:
  void start(std::span<const Tensor> tensors) override {
    copies_.clear();
    for (const Tensor& tensor : tensors) copies_.push_back(tensor.clone());
  }
  std::vector<Tensor> finish() override { return copies_; }

 private:
  std::vector<Tensor> copies_;
};

class CpuBackend final : public DeviceBackend {
 public:
  void make_ready() override {}

  void* allocate(size_t bytes) override {
    if (DryRun::active() && bytes >= counted_only) return reserve(bytes);
    if (keeps(bytes))
      if (void* block = large_.take(bytes)) return block;
    void* block = nullptr;
    check(posix_memalign(&block, 64, bytes) == 0, "memory: no ", bytes,
          " bytes left on the cpu; try a smaller batch");
    return block;
  }
  void release(void* block, size_t bytes) override {
    if (bytes >= counted_only) {
      const std::lock_guard lock(mutex_);
      if (reserved_.erase(block) > 0) {
        munmap(block, bytes);
        return;
      }
    }
    if (!large_.give(block)) std::free(block);
  }
  bool keeps(size_t bytes) const override { return !is_sanitized && bytes >= LargeBlocks::least; }
  Kept kept() override {
    const LargeBlocks::Held held = large_.held();
    return {held.bytes, held.askings};
  }
  void trim() override { large_.trim(); }
  void zero(void* to, size_t bytes) override {
    if (!is_only_counted(bytes)) std::memset(to, 0, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_to_host(void* host, const void* from, size_t bytes) override { std::memcpy(host, from, bytes); }
  void copy_from_host(void* to, const void* host, size_t bytes) override { std::memcpy(to, host, bytes); }

  void convert(int64_t n, DType from_type, const void* from, DType to_type, void* to) override {
    with_type(from_type, [&]<class From>() {
      with_type(to_type, [&]<class To>() {
        const From* x = static_cast<const From*>(from);
        To* y = static_cast<To*>(to);
        for (int64_t i = 0; i < n; ++i) y[i] = converted<To>(x[i]);
      });
    });
  }
  void fill(int64_t n, double value, DType type, void* to) override {
    if (is_only_counted(static_cast<size_t>(n) * size_of(type))) return;
    with_type(type, [&]<class T>() { std::fill_n(static_cast<T*>(to), n, converted<T>(value)); });
  }

  std::unique_ptr<LapClock> make_lap_clock() override { return std::make_unique<HostClock>(); }
  std::unique_ptr<ReadBack> make_read_back() override { return std::make_unique<CopiesOnHost>(); }
  std::unique_ptr<Replay> record_replay(const std::function<void()>&) override {
    fail("replay: the cpu replays no work; --no-graph leaves it out");
  }
  void allow_tf32(bool) override {}

 private:
  // A dry run writes nothing into large blocks, which so take no memory.
  static bool is_only_counted(size_t bytes) { return bytes >= not_written && DryRun::active(); }

  // Addresses without memory: a dry run counts what a model would take, on a machine that has less.
  void* reserve(size_t bytes) {
    void* block =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(block != MAP_FAILED, "memory: another ", bytes,
          " bytes are more than this machine can even address");
    const std::lock_guard lock(mutex_);
    reserved_.insert(block);
    return block;
  }

  LargeBlocks large_;
  std::mutex mutex_;
  std::unordered_set<void*> reserved_;
};

}  // namespace

DeviceBackend& cpu_backend() {
  static CpuBackend& one = *new CpuBackend;  // tensors of static life may outlast any order of destruction
  return one;
}

}  // namespace tessera
