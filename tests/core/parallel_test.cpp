#include "engine/core/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core/error.h"

using namespace tessera;

namespace {

using Chunks = std::set<std::pair<int64_t, int64_t>>;

Chunks chunks_of(int64_t n, int64_t grain) {
  std::vector<std::pair<int64_t, int64_t>> seen(static_cast<size_t>(n + 1));
  std::atomic<size_t> count{0};
  parallel_for(n, grain, [&](int64_t begin, int64_t end) { seen[count++] = {begin, end}; });
  return Chunks(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count.load()));
}

// Values whose float sum depends on the order that they are added in.
double sum_of_reciprocals() {
  return parallel_sum<float>(100000, 1000, [](int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += 1.0f / static_cast<float>(i + 1);
    return sum;
  });
}

}  // namespace

TEST_CASE("parallel_for: chunks of the grain, whatever the thread count") {
  for (const int count : {1, 2, 0}) {
    set_threads(count);
    CHECK(chunks_of(10, 4) == Chunks{{0, 4}, {4, 8}, {8, 10}});
    CHECK(chunks_of(8, 4) == Chunks{{0, 4}, {4, 8}});
    CHECK(chunks_of(3, 4) == Chunks{{0, 3}});
    CHECK(chunks_of(0, 4).empty());
  }
}

TEST_CASE("SerialLoops: chunks stay on the thread, in their order, while it lives") {
  const auto here = std::this_thread::get_id();
  std::vector<std::pair<int64_t, int64_t>> chunks;
  const SerialLoops serial;
  parallel_for(10, 4, [&](int64_t begin, int64_t end) {
    CHECK(std::this_thread::get_id() == here);
    chunks.emplace_back(begin, end);
  });
  CHECK(chunks == std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {4, 8}, {8, 10}});
  bool elsewhere = true;
  std::thread([&] { elsewhere = SerialLoops::active(); }).join();
  CHECK_FALSE(elsewhere);
}

TEST_CASE("SmallChunks: shortens chunks while it lives, and counts the loops that it splits") {
  CHECK(chunk_length(64) == 64);
  {
    const SmallChunks small(6);
    CHECK(chunk_length(64) == 6);
    CHECK(chunk_length(4) == 4);
    CHECK(chunk_length(64, 2) == 3);
    CHECK(chunk_length(64, 7) == 1);
    CHECK(chunk_length(64, 0) == 6);
    CHECK(small.split_loops() == 0);
    CHECK(chunks_of(10, chunk_length(64)) == Chunks{{0, 6}, {6, 10}});
    CHECK(chunks_of(6, chunk_length(64)) == Chunks{{0, 6}});
    CHECK(small.split_loops() == 1);
    CHECK_THROWS_WITH_AS(SmallChunks(2), "SmallChunks: another one is alive", Error);
    CHECK(chunk_length(64) == 6);
  }
  CHECK(chunk_length(64) == 64);
  CHECK_THROWS_WITH_AS(SmallChunks(0), "SmallChunks: a chunk of 0 elements; at least 1 is needed", Error);
}

TEST_CASE("parallel_sum: the same bits on any thread count") {
  set_threads(1);
  const double alone = sum_of_reciprocals();
  set_threads(0);
  for (int i = 0; i < 20; ++i) CHECK(sum_of_reciprocals() == alone);
  CHECK(parallel_sum<int>(0, 5, [](int64_t, int64_t) { return 1; }) == 0);
}

TEST_CASE("parallel_for: an error in a chunk comes out") {
  const auto run = [] {
    parallel_for(100, 1, [](int64_t begin, int64_t) { check(begin != 50, "chunk 50"); });
  };
  CHECK_THROWS_WITH_AS(run(), "chunk 50", Error);
}

TEST_CASE("threads: set and asked") {
  set_threads(1);
  CHECK(threads() == 1);
  set_threads(0);
  CHECK(threads() >= 1);
  CHECK_THROWS_WITH_AS(set_threads(-1), "threads: -1 is negative; 0 means all cores", Error);
}
