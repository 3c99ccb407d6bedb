#include "engine/core/storage.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/core/tensor.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

MemoryStats stats() { return memory_stats(Device::cpu); }

}  // namespace

TEST_CASE("storage: a freed block serves the next request of its size") {
  const Tensor warm = Tensor::empty({100000});
  void* block = nullptr;
  {
    const Tensor x = Tensor::empty({12345});
    block = x.raw();
  }
  const uint64_t before = stats().system_allocations;
  const Tensor y = Tensor::empty({12345});
  CHECK(y.raw() == block);
  for (int i = 0; i < 10; ++i) Tensor::empty({12345});
  CHECK(stats().system_allocations <= before + 1);
}

TEST_CASE("storage: what is in use, and the most there was") {
  release_cached(Device::cpu);
  const MemoryStats start = stats();
  reset_peak(Device::cpu);
  {
    const Tensor x = Tensor::empty({1 << 20}, DType::u8);
    CHECK(stats().in_use == start.in_use + (1 << 20));
    const Tensor view = x.reshape({1 << 10, 1 << 10});
    CHECK(stats().in_use == start.in_use + (1 << 20));
  }
  CHECK(stats().in_use == start.in_use);
  CHECK(stats().peak == start.in_use + (1 << 20));
  CHECK(stats().reserved == start.reserved + (1 << 20));
  release_cached(Device::cpu);
  CHECK(stats().reserved == start.reserved);
  reset_peak(Device::cpu);
  CHECK(stats().peak == start.in_use);
}

TEST_CASE("storage: blocks are aligned, the empty one too") {
  for (const int64_t size : {0, 1, 100, 1 << 22}) {
    const Tensor x = Tensor::empty({size}, DType::u8);
    CHECK(reinterpret_cast<uintptr_t>(x.raw()) % 64 == 0);
  }
}

TEST_CASE("storage: poison shows what is read before it is written") {
  poison_new_storage(true);
  const Tensor f32 = Tensor::empty({3}), f64 = Tensor::empty({3}, DType::f64),
               narrow = Tensor::empty({3}, DType::bf16);
  poison_new_storage(false);
  for (const Tensor& x : {f32, f64, narrow})
    for (const double value : x.values()) CHECK(std::isnan(value));
}

TEST_CASE("storage: memory that is not there is an error that leaves the books right") {
  const MemoryStats before = stats();
  CHECK(error_of([] { Tensor::empty({int64_t{1} << 50}); }) ==
        "memory: no 4503599627370496 bytes left on the cpu; try a smaller batch");
  CHECK(stats().in_use == before.in_use);
  CHECK(stats().peak == before.peak);
}
