#include "engine/core/large_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace tessera;

namespace {

constexpr size_t page = 4096;

char* bytes_of(void* block) { return static_cast<char*>(block); }

}  // namespace

TEST_CASE("large blocks: they lie side by side, and no two share a byte") {
  LargeBlocks blocks;
  const std::vector<size_t> sizes{LargeBlocks::least, 5 * page + 1, 3 * page - 1, size_t{70} << 20, page};
  std::vector<void*> taken;
  for (size_t i = 0; i < sizes.size(); ++i) {
    taken.push_back(blocks.take(sizes[i]));
    REQUIRE(taken[i] != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(taken[i]) % page == 0);
    std::memset(taken[i], static_cast<int>(i + 1), sizes[i]);
  }
  CHECK(bytes_of(taken[1]) == bytes_of(taken[0]) + LargeBlocks::least);
  CHECK(bytes_of(taken[2]) == bytes_of(taken[1]) + 6 * page);
  CHECK(bytes_of(taken[4]) == bytes_of(taken[2]) + 3 * page);  // the largest did not fit between
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(bytes_of(taken[i])[0] == static_cast<char>(i + 1));
    CHECK(bytes_of(taken[i])[sizes[i] - 1] == static_cast<char>(i + 1));
  }
}

TEST_CASE("large blocks: what is given back is joined and taken again, and empty once trimmed") {
  LargeBlocks blocks;
  void* const first = blocks.take(8 * page);
  void* const second = blocks.take(8 * page);
  void* const third = blocks.take(8 * page);
  void* const last = blocks.take(8 * page);
  std::memset(first, 1, 24 * page);
  for (void* block : {first, third, second}) CHECK(blocks.give(block));  // the last one joins both sides
  const LargeBlocks::Held held = blocks.held();
  CHECK(held.bytes == 32 * page);
  char* again = bytes_of(blocks.take(24 * page));
  CHECK(again == first);
  const auto not_zero = [&] {
    return std::count_if(again, again + 24 * page, [](char c) { return c != 0; });
  };
  CHECK(not_zero() == static_cast<int64_t>(24 * page));
  CHECK(blocks.held().bytes == held.bytes);
  CHECK(blocks.held().askings == held.askings);
  CHECK(blocks.give(again));
  blocks.trim();
  CHECK(blocks.held().bytes == 8 * page);
  again = bytes_of(blocks.take(24 * page));
  CHECK(again == first);
  CHECK(not_zero() == 0);
  CHECK(blocks.held().askings == held.askings + 1);
  // The smallest range that holds a block is cut, so that the region's rest stays whole.
  CHECK(blocks.give(again));
  CHECK(blocks.take(2 * page) == first);
  CHECK(blocks.give(last));
}

TEST_CASE("large blocks: another's block and more than there is are refused") {
  LargeBlocks blocks;
  int own = 0;
  CHECK_FALSE(blocks.give(&own));
  CHECK_FALSE(blocks.give(nullptr));
  CHECK(blocks.take(size_t{1} << 62) == nullptr);
  void* const block = blocks.take(page);
  REQUIRE(block != nullptr);
  CHECK(blocks.give(block));
  CHECK_FALSE(blocks.give(block));
}
