// The main operations on their own, at the sizes of one micro-batch of a small ViT: 32 images of 65 tokens,
// width 192, 12 heads of 16; and a ResNet's at the sizes of its three stages for 32 images of 64 x 64. Each
// runs forward alone, and forward and backward as a training step has it.

#include <benchmark/benchmark.h>

#include <functional>

#include "engine/autograd/tape.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/random.h"
#include "engine/cpu/gemm.h"
#include "engine/ops/activations.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/conv.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

constexpr int64_t B = 32, N = 65, D = 192, H = 12, hidden = 384;

Tensor random(const Shape& shape, uint64_t seed) {
  const Tensor x = Tensor::empty(shape);
  Random draws(seed);
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(draws.normal());
  return x;
}

// What an op moves and computes at least, for the rates.
struct Work {
  int64_t macs = 0;   // of the forward pass; the backward pass has twice as many
  int64_t bytes = 0;  // read and written by the forward pass
};

void count(benchmark::State& state, double flops, double bytes) {
  using benchmark::Counter;
  if (flops > 0) state.counters["FLOP/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
  if (bytes > 0) state.counters["B/s"] = Counter(bytes, Counter::kIsIterationInvariantRate);
}

void forward(benchmark::State& state, const std::function<Tensor()>& op, Work work) {
  for (auto _ : state) benchmark::DoNotOptimize(op().raw());
  count(state, 2 * static_cast<double>(work.macs), static_cast<double>(work.bytes));
}

void forward_backward(benchmark::State& state, const std::function<Tensor()>& op, Work work) {
  const Tensor y = op(), dy = random(y.shape(), 9).to(y.dtype());
  for (auto _ : state) {
    Tape tape;
    tape.backward(op(), dy);
  }
  count(state, 6 * static_cast<double>(work.macs), 0);
}

void add(const std::string& name, const std::function<Tensor()>& op, Work work) {
  const auto run = [&](const char* phase, auto measure) {
    benchmark::RegisterBenchmark((name + phase).c_str(),
                                 [=](benchmark::State& state) { measure(state, op, work); })
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
  };
  run("/forward", forward);
  run("/forward+backward", forward_backward);
}

void add_linear(const std::string& name, DType dtype, int64_t in, int64_t out, Activation activation) {
  const auto operand = [=](const Shape& shape, uint64_t seed) {
    return random(shape, seed).to(dtype).require_grad();
  };
  const Tensor x = operand({B, N, in}, 1), weight = operand({out, in}, 2), bias = operand({out}, 3);
  add(name, [=] { return linear(x, weight, bias, activation); }, {.macs = B * N * in * out});
}

void add_linears(const std::string& precision, DType dtype) {
  add_linear("linear qkv 192->576" + precision, dtype, D, 3 * D, Activation::none);
  add_linear("linear fc1+gelu 192->384" + precision, dtype, D, hidden, Activation::gelu);
  add_linear("linear fc2 384->192" + precision, dtype, hidden, D, Activation::none);
}

void add_attention(const std::string& precision, DType dtype) {
  const Tensor qkv = random({B, N, 3 * D}, 1).to(dtype).require_grad();
  ScoreTerms fixed;
  fixed.scale = 0.25;
  ScoreTerms lsa = fixed;
  lsa.learned_scale = Tensor::full({H}, 0.25).to(dtype).require_grad();
  lsa.mask_diagonal = true;
  const Work work{.macs = attention_macs(B, H, N, N, D / H)};
  add(
      "attention" + precision, [=] { return attention(qkv, H, fixed); }, work);
  add(
      "attention, LSA" + precision, [=] { return attention(qkv, H, lsa); }, work);
  add(
      "attention_plain, LSA" + precision, [=] { return attention_plain(qkv, H, lsa); }, work);
}

// A 3 x 3 convolution of a stage, and its batch norm with the ReLU.
void add_stage(const std::string& precision, DType dtype, int64_t side, int64_t channels) {
  const Tensor x = random({B, side, side, channels}, 1).to(dtype).require_grad();
  const Tensor weight = random({channels, channels, 3, 3}, 2).to(dtype).require_grad();
  const Tensor one = Tensor::full({channels}, 1).to(dtype).require_grad(),
               zero = Tensor::zeros({channels}).to(dtype).require_grad();
  const Tensor mean = Tensor::zeros({channels}), variance = Tensor::full({channels}, 1);
  const std::string name = " " + std::to_string(channels) + " channels" + precision;
  add("conv2d" + name, [=] { return conv2d(x, weight, Tensor(), {.padding = 1}); },
      {.macs = x.elements() * channels * 9});
  add("batch_norm+relu" + name,
      [=] { return batch_norm(x, one, zero, mean, variance, {.training = true, .f = Activation::relu}); },
      {.bytes = 2 * static_cast<int64_t>(x.bytes())});
  const Tensor shortcut = random({B, side, side, channels}, 3).to(dtype).require_grad();
  add("batch_norm+add+relu" + name,
      [=] {
        return batch_norm(x, one, zero, mean, variance, {.training = true, .f = Activation::relu}, shortcut);
      },
      {.bytes = 3 * static_cast<int64_t>(x.bytes())});
  add("batch_norm, add, relu" + name,
      [=] { return relu(add(batch_norm(x, one, zero, mean, variance, {.training = true}), shortcut)); },
      {.bytes = 7 * static_cast<int64_t>(x.bytes())});
}

// The patch embedding of a convolutional stem: 8 x 8 patches of 64 channels.
void add_patches(const std::string& precision, DType dtype) {
  const Tensor x = random({B, 32, 32, 64}, 1).to(dtype).require_grad();
  const Tensor weight = random({2 * D, 64, 8, 8}, 2).to(dtype).require_grad();
  add("conv2d 8 x 8 patches" + precision, [=] { return conv2d(x, weight, Tensor(), {.stride = 8}); },
      {.macs = x.elements() * 2 * D});
}

void add_maps(const std::string& precision, DType dtype) {
  for (const int64_t shrunk : {1, 2, 4}) add_stage(precision, dtype, 64 / shrunk, 16 * shrunk);
  add_patches(precision, dtype);
}

void add_all() {
  add_linears("", DType::f32);
  add_linears(", bf16", DType::bf16);
  add_attention("", DType::f32);
  add_attention(", bf16", DType::bf16);
  add_maps("", DType::f32);
  add_maps(", bf16", DType::bf16);
  const Tensor x = random({B, N, D}, 1).require_grad(), scores = random({B, H, N, N}, 2).require_grad();
  const Tensor weight = random({D}, 3).require_grad(), bias = random({D}, 4).require_grad();
  const auto moved = [](const Tensor& t) { return Work{.bytes = 2 * static_cast<int64_t>(t.bytes())}; };
  add(
      "layer_norm", [=] { return layer_norm(x, weight, bias); }, moved(x));
  add(
      "gelu", [=] { return gelu(x); }, moved(x));
  add(
      "softmax", [=] { return softmax(scores); }, moved(scores));
}

// The peak that the shares in RESULTS.md refer to.
void gemm_peak(benchmark::State& state) {
  double gflops = 0;
  for (auto _ : state) gflops = measure_gemm_peak(DType::f32);
  state.counters["FLOP/s"] = gflops * 1e9;
}

}  // namespace

}  // namespace tessera

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RegisterBenchmark("gemm_peak", tessera::gemm_peak)->Iterations(1)->Unit(benchmark::kMillisecond);
  tessera::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
