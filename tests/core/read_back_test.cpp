#include "engine/core/read_back.h"

#include <doctest/doctest.h>

#include "tests/cuda.h"

using namespace tessera;

namespace {

void check_on(Device device) {
  const Tensor x = Tensor::from({1, 2, 3}, {3}).to(device), n = Tensor::full({1}, 7, DType::i64, device);
  const std::unique_ptr<ReadBack> first = make_read_back(device), second = make_read_back(device);
  first->start(std::vector<Tensor>{x, n});
  x.fill(5);
  second->start(std::vector<Tensor>{x});
  x.fill(6);
  const std::vector<Tensor> numbers = first->finish();
  CHECK(numbers.size() == 2);
  CHECK(numbers[0].device() == Device::cpu);
  CHECK(numbers[0].values() == std::vector<double>{1, 2, 3});
  CHECK(numbers[1].integers() == std::vector<int64_t>{7});
  CHECK(second->finish()[0].values() == std::vector<double>{5, 5, 5});
  first->start(std::vector<Tensor>{x});
  CHECK(first->finish()[0].values() == std::vector<double>{6, 6, 6});
}

}  // namespace

TEST_CASE("numbers read back are those of the start, whatever comes after it") { check_on(Device::cpu); }

TEST_CASE("cuda: numbers read back are those of the start") {
  if (cuda_here()) check_on(Device::cuda);
}
