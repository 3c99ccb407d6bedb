#include <doctest/doctest.h>

#include <numeric>

#include "engine/core/tensor.h"
#include "tests/cuda.h"

using namespace tessera;

TEST_CASE("cuda: memory larger than the pinned buffers arrives whole, again and again") {
  if (!cuda_here()) return;
  std::vector<int64_t> numbers(10 << 20);  // 80 MiB
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor x = Tensor::from(numbers, {std::ssize(numbers)});
  const Tensor first = x.to(Device::cuda), second = first.clone();
  CHECK(second.to(Device::cpu).integers() == numbers);
  CHECK(first.to(Device::cpu).integers() == numbers);
}
