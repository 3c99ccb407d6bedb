#include "apps/reporting/profile.h"

#include <doctest/doctest.h>

#include "engine/autograd/tape.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "tests/cuda.h"

using namespace tessera;

namespace {

void check_on(Device device) {
  Profile profile(device, {.flops = 1e9, .bytes = 1e9});
  const Tensor x = Tensor::full({3, 5}, 2, DType::f32, device);
  Tensor w = Tensor::full({5, 4}, 1, DType::f32, device);
  w.require_grad();
  for (int step = 0; step < 2; ++step) {
    profile.start();
    Tape tape;
    tape.backward(sum(matmul(x, w)));
    profile.stop();
  }
  matmul(x, w);  // of no step
  CHECK(profile.steps() == 2);
  CHECK(profile.rest() >= 0);
  const std::vector<Profile::Entry> entries = profile.entries();
  REQUIRE(entries.size() == 2);
  const Profile::Entry& matmuls = entries[entries[0].op == "matmul" ? 0 : 1];
  CHECK(matmuls.op == "matmul");
  CHECK(matmuls.forward > 0);
  CHECK(matmuls.backward > 0);
  CHECK(matmuls.macs == 2 * 3 * 5 * 4);
  constexpr int forward_bytes = 4 * (3 * 5 + 5 * 4 + 3 * 4), backward_bytes = 4 * (3 * 4 + 5 * 4);
  CHECK(matmuls.bytes == 2 * (forward_bytes + backward_bytes));
  constexpr int backward_flops = 2 * 2 * 3 * 5 * 4;  // which take longer than the bytes; forward these do
  CHECK(matmuls.floor == doctest::Approx(2e-9 * (forward_bytes + backward_flops)));
  CHECK(profile.forward() == doctest::Approx(entries[0].forward + entries[1].forward));
}

}  // namespace

TEST_CASE("a profile has the time of each op, forward and backward") { check_on(Device::cpu); }

TEST_CASE("cuda: a profile has the time of each op, forward and backward") {
  if (cuda_here()) check_on(Device::cuda);
}
