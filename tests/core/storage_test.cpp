#include "engine/core/storage.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/core/machine_memory.h"
#include "engine/core/printable.h"
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

TEST_CASE("storage: freed memory serves blocks of other sizes, so that sizes that change take no more") {
  release_cached(Device::cpu);
  for (const int64_t unit : {int64_t{100}, int64_t{1} << 16}) {
    const auto step = [&](int64_t shorter) {  // eight blocks, each a little shorter than it might be
      std::vector<Tensor> blocks;
      for (int64_t i = 0; i < 8; ++i) blocks.push_back(Tensor::empty({(64 - (i * shorter) % 8) * unit}));
    };
    step(0);
    const MemoryStats first = stats();
    for (int64_t i = 1; i < 20; ++i) step(i);
    CHECK(stats().reserved == first.reserved);
    CHECK(stats().system_allocations == first.system_allocations);
    CHECK(stats().in_use == first.in_use);
  }
}

TEST_CASE("storage: what is in use is what was asked for, in a larger block too") {
  release_cached(Device::cpu);
  const void* large = nullptr;
  {
    const Tensor x = Tensor::empty({50 << 10}, DType::u8);
    large = x.raw();
  }
  const MemoryStats start = stats();
  {
    const Tensor y = Tensor::empty({45 << 10}, DType::u8);
    CHECK(y.raw() == large);
    CHECK(stats().in_use == start.in_use + (45 << 10));
  }
  CHECK(stats().in_use == start.in_use);
  CHECK(Tensor::empty({50 << 10}, DType::u8).raw() == large);
  CHECK(stats().reserved == start.reserved);
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

TEST_CASE("storage: a dry run counts more than the machine has, and takes none of it") {
  const auto resident_pages = [] {
    std::ifstream file("/proc/self/statm");
    int64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident;
  };
  const MemoryStats before = stats();
  const int64_t pages = resident_pages();
  {
    const DryRun dry;
    const Tensor large = Tensor::zeros({int64_t{1} << 38}), other = Tensor::full({int64_t{1} << 26}, 1);
    CHECK(stats().in_use - before.in_use == (size_t{1} << 40) + (size_t{1} << 28));
  }
  CHECK(resident_pages() - pages < 1000);
  release_cached(Device::cpu);
  CHECK(stats().reserved <= before.reserved);
}

TEST_CASE("machine memory: more than there is, is refused with both figures") {
  const int64_t here = machine_memory();
  if (here == 0) {
    MESSAGE("skipped: this system does not tell its memory");
    return;
  }
  CHECK(here > int64_t{1} << 28);
  CHECK_NOTHROW(check_memory(static_cast<double>(here), "model: needs"));
  const std::string why = error_of([] { check_memory(3.14e17, "model: the weights need"); });
  CHECK(why.starts_with("model: the weights need 314 PB of memory, here are "));
  CHECK(error_of([] { check_memory(3.1e18, "x"); }).starts_with("x 3.1 EB of memory"));
}

TEST_CASE("printable: what is UTF-8") {
  for (const char* text : {"", "cat", "Gr\xc3\xbc\xc3\x9f", "\xe7\x8c\xab", "\xf0\x9f\x90\x88"})
    CHECK(is_utf8(text));
  for (const char* text : {"caf\xe9", "\xc3", "a\xff", "\xe7\x8c", "\xc0\x80"}) CHECK(!is_utf8(text));
}
