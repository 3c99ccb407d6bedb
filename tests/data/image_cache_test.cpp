#include "data/image_cache.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>
#include <vector>

namespace tessera {

namespace {

constexpr size_t size = 300;
using Pixels = std::array<uint8_t, size>;

Pixels pixels_of(int64_t i) {
  Pixels pixels;
  for (size_t k = 0; k < size; ++k) pixels[k] = static_cast<uint8_t>(static_cast<size_t>(i) * 31 + k);
  return pixels;
}

bool has(const ImageCache& cache, int64_t i) {
  Pixels found{};
  if (!cache.get(i, found.data())) return false;
  CHECK(found == pixels_of(i));
  return true;
}

// Memory that a fork shares.
ImageCache::Memory shared_memory(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* at) { munmap(at, bytes); }};
}

}  // namespace

TEST_CASE("image cache: images stay until there is no room, and none is replaced") {
  ImageCache cache(10, size, 3 * size + 5);
  for (const int64_t i : {7, 2, 7, 9, 4}) cache.keep(i, pixels_of(i).data());
  cache.keep(2, pixels_of(3).data());
  for (int64_t i = 0; i < 10; ++i) CHECK(has(cache, i) == (i == 7 || i == 2 || i == 9));
}

TEST_CASE("image cache: none without room") {
  for (ImageCache cache(4, size, size - 1); const int64_t i : {0, 3}) {
    cache.keep(i, pixels_of(i).data());
    CHECK(!has(cache, i));
  }
}

TEST_CASE("image cache: threads find whole images or none") {
  constexpr int64_t images = 2000;
  ImageCache cache(images, size, 1500 * size);
  std::vector<std::thread> threads;
  std::array<std::array<bool, images>, 4> right{};
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&cache, &mine = right[t]] {
      for (int64_t i = 0; i < images; ++i) {
        Pixels found = pixels_of(i);
        if (!cache.get(i, found.data())) cache.keep(i, found.data());
        mine[static_cast<size_t>(i)] = found == pixels_of(i);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : right) CHECK(std::count(mine.begin(), mine.end(), true) == images);
  int64_t kept = 0;
  for (int64_t i = 0; i < images; ++i) kept += has(cache, i);
  CHECK(kept == 1500);
}

TEST_CASE("image cache: processes share one; what a killed one has claimed stays empty, the rest goes on") {
  ImageCache cache(1000, size, 1000 * size);
  cache.move_to(shared_memory(cache.bytes()));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    for (int64_t i = 0;; i = (i + 1) % 500) cache.keep(i, pixels_of(i).data());
  while (!has(cache, 100)) std::this_thread::yield();
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(has(cache, 50));
  for (int64_t i = 0; i < 1000; ++i) cache.keep(i, pixels_of(i).data());
  int64_t missing = 0;
  for (int64_t i = 0; i < 1000; ++i) missing += !has(cache, i);
  CHECK(missing <= 1);
}

}  // namespace tessera
