#include "engine/ops/same_device.h"

#include <doctest/doctest.h>

#include "engine/check/op_case.h"
#include "engine/core/dispatch.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/correct.h"
#include "engine/ops/loss.h"
#include "engine/ops/rotary.h"
#include "engine/ops/shape.h"
#include "tests/cuda.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

// In a dry run a build without CUDA makes tensors that lie on a GPU; one with CUDA needs the GPU.
bool can_name_gpu() { return !has_cuda || cuda_here(); }

Tensor on_gpu(const Shape& shape, DType dtype = DType::f32) {
  return Tensor::empty(shape, dtype, Device::cuda);
}

template <class F> void expect_refusal(const std::string& op, F&& f) {
  const std::string message = error_of(f);
  CAPTURE(op);
  CAPTURE(message);
  CHECK(message.starts_with(op + ": "));
  CHECK(message.find(" is on cpu, ") != std::string::npos);
  CHECK(message.find(" on cuda; move them to one device with to()") != std::string::npos);
}

}  // namespace

TEST_CASE("same device: the error names the op, both tensors and the way out") {
  if (!can_name_gpu()) return;
  const DryRun dry;
  const Tensor x = Tensor::zeros({2, 3}), w = on_gpu({3}, DType::bf16), none;
  CHECK(error_of([&] {
          check_same_device("norm", {x, none, w});
        }) == "norm: f32 [2, 3] is on cpu, bf16 [3] on cuda; move them to one device with to()");
  check_same_device("norm", {x, none, x});
  check_same_device("norm", {none, w});
}

TEST_CASE("same device: every op refuses every input that lies elsewhere") {
  if (!can_name_gpu()) return;
  const DryRun dry;
  int refused = 0;
  for (const OpCase& c : all_cases())
    for (size_t i = 1; i < c.inputs.size(); ++i) {
      CAPTURE(c.name());
      std::vector<Tensor> inputs;
      for (const Tensor& x : c.inputs) inputs.push_back(Tensor::empty(x.shape()));
      inputs[i] = on_gpu(inputs[i].shape());
      expect_refusal(c.op, [&] { c.function(inputs); });
      ++refused;
    }
  CHECK(refused > 100);
}

TEST_CASE("same device: constants that an op reads are refused too") {
  if (!can_name_gpu()) return;
  const DryRun dry;
  const Tensor x = Tensor::empty({2, 3}), c = Tensor::empty({3}), qkv = Tensor::empty({2, 4, 6});
  const Tensor labels = on_gpu({2}, DType::i64), elsewhere = on_gpu({3});
  expect_refusal("gather", [&] { gather(x, labels); });
  expect_refusal("cross_entropy", [&] { cross_entropy(x, labels); });
  expect_refusal("cross_entropy", [&] { cross_entropy_soft(x, on_gpu({2, 3})); });
  expect_refusal("count_correct", [&] { count_correct(x, labels); });
  expect_refusal("batch_norm", [&] { batch_norm(x, c, c, elsewhere, c, {}); });
  expect_refusal("batch_norm", [&] { batch_norm(x, c, c, c, elsewhere, {}); });
  expect_refusal("rotary", [&] { rotary(Tensor::empty({2, 4}), on_gpu({2, 2, 2})); });
  expect_refusal("attention", [&] { attention(qkv, 2, {.mask = on_gpu({1, 4, 4})}); });
  expect_refusal("attention", [&] { attention(qkv, 2, {.slopes = on_gpu({2}), .grid = {2, 2}}); });
}
