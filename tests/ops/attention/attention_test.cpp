#include "engine/ops/attention/attention.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/shape.h"
#include "tests/error_of.h"
#include "tests/ops/gradient_of.h"

using namespace tessera;
using Approx = doctest::Approx;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("attention weighs the values by the softmax of the scaled products") {
  const Tensor q = Tensor::from({1.0}, {1, 1, 1}, DType::f64),
               k = Tensor::from({0, std::log(3.0)}, {1, 2, 1}, DType::f64);
  const Tensor v = Tensor::from({10, 20}, {1, 2, 1}, DType::f64);
  CHECK(attention(q, k, v, 1).item() == Approx(17.5));  // weights 1/4 and 3/4
  CHECK(attention(q, k, v, 1, {.scale = 0}).item() == Approx(15));
  CHECK(attention(q, k, v, 1, {.learned_scale = Tensor::full({1}, 2, DType::f64)}).item() == Approx(19));
}

TEST_CASE("attention reads q, k and v of each head from their place in the packed projection") {
  const Tensor qkv = random_tensor({2, 4, 18}, 1);  // 2 heads of 3
  std::vector<double> part[3];
  const std::vector<double> all = qkv.values();
  for (size_t i = 0; i < all.size(); ++i) part[i % 18 / 6].push_back(all[i]);
  Tensor apart[3];
  for (int p = 0; p < 3; ++p) apart[p] = Tensor::from(part[p], {2, 4, 6}, DType::f64);
  CHECK(attention(qkv, 2).values() == attention(apart[0], apart[1], apart[2], 2).values());
}

TEST_CASE("attention of several blocks, odd widths and wide heads equals its plain twin") {
  for (const auto& size : {std::pair<int64_t, int64_t>{150, 64}, {101, 33}, {64, 16}, {257, 1}}) {
    const int64_t tokens = size.first, head_dim = size.second;
    CAPTURE(tokens);
    OpCase c{"attention",
             "",
             {random_tensor({2, tokens, 6 * head_dim}, 1), random_tensor({2, tokens, tokens}, 2)},
             {}};
    c.inputs.push_back(random_tensor({2}, 3));
    for (Tensor& input : c.inputs) input = input.to(DType::bf16).to(DType::f64);
    const auto with = [](auto attend, std::span<const Tensor> in) {
      return attend(in[0], 2, ScoreTerms{.learned_scale = in[2], .prior = in[1], .mask_diagonal = true});
    };
    using Attend = Tensor (*)(const Tensor&, int64_t, const ScoreTerms&);
    c.function = [&](std::span<const Tensor> in) { return with(static_cast<Attend>(attention), in); };
    c.plain = [&](std::span<const Tensor> in) { return with(static_cast<Attend>(attention_plain), in); };
    const Run plain = run_case(c, c.plain, DType::f64);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      CAPTURE(dtype);
      const Run fused = run_case(c, c.function, dtype);
      const double tolerance = dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-4 : 0.03;
      CHECK(relative_error(fused.output, plain.output) < tolerance);
      for (size_t i = 0; i < plain.gradients.size(); ++i)
        CHECK(relative_error(fused.gradients[i], plain.gradients[i]) < tolerance);
    }
  }
}

TEST_CASE("one tensor may be queries, keys and values") {
  const Tensor x = random_tensor({2, 5, 6}, 1);
  for (const bool leaf : {true, false}) {
    const auto with = [&](const Tensor& t, const auto& attend) {
      const Tensor value = leaf ? t : scale(t, 2);
      return attend(value, value, value);
    };
    const Tensor fused = gradient_of(
        x, [&](const Tensor& t) { return with(t, [](auto... v) { return attention(v..., 2); }); });
    const Tensor plain = gradient_of(
        x, [&](const Tensor& t) { return with(t, [](auto... v) { return attention_plain(v..., 2); }); });
    CHECK(relative_error(fused, plain) < 1e-12);
  }
}

TEST_CASE("a constant operand gets no gradient and costs the others none of theirs") {
  const Tensor q = random_tensor({1, 3, 4}, 1), k = random_tensor({1, 5, 4}, 2),
               v = random_tensor({1, 5, 4}, 3);
  const auto together = [&](int which, const auto& attend) {
    return gradient_of(
        which == 0   ? q
        : which == 1 ? k
                     : v,
        [&](const Tensor& x) { return attend(which == 0 ? x : q, which == 1 ? x : k, which == 2 ? x : v); });
  };
  for (int which = 0; which < 3; ++which) {
    const Tensor fused = together(which, [](auto... x) { return attention(x..., 2); });
    const Tensor plain = together(which, [](auto... x) { return attention_plain(x..., 2); });
    CHECK(relative_error(fused, plain) < 1e-12);
  }
}

TEST_CASE("scores of any size neither overflow nor lose the row") {
  const Tensor q = Tensor::from({1e4, -1e4}, {1, 2, 1}), k = Tensor::from({1, 2}, {1, 2, 1});
  const Tensor y = attention(q, k, Tensor::from({3, 5}, {1, 2, 1}), 1);
  CHECK(y.values() == std::vector<double>{5, 3});
}

TEST_CASE("a masked key has no weight at all") {
  Tensor mask = Tensor::zeros({1, 2, 2});
  mask.copy_from(Tensor::from({0, -infinity, -infinity, 0}, {1, 2, 2}));
  const Tensor x = random_tensor({3, 2, 4}, 1).to(DType::f32);
  CHECK(attention(x, x, x, 2, {.mask = mask}).values() == x.values());
}

TEST_CASE("probabilities in f32 are exact from 1 down to the smallest, and 0 below") {
  std::vector<double> scores{0, -infinity, -1e30, -89, std::nan("")};
  const int64_t special = static_cast<int64_t>(scores.size());
  for (double x = -87; x < 0; x += 0.0371) scores.push_back(static_cast<double>(static_cast<float>(x)));
  const int64_t n = static_cast<int64_t>(scores.size());
  // Image b has the keys 0 and scores[b], and its answer is the second one's probability.
  Tensor k = Tensor::zeros({n, 2, 1}), v = Tensor::zeros({n, 2, 1});
  for (int64_t b = 0; b < n; ++b) {
    k.data<float>()[2 * b + 1] = static_cast<float>(scores[static_cast<size_t>(b)]);
    v.data<float>()[2 * b + 1] = 1;
  }
  const std::vector<double> p = attention(Tensor::full({n, 1, 1}, 1), k, v, 1).values();
  CHECK(p[0] == 0.5);
  for (size_t b : {1, 2, 3}) CHECK(p[b] == 0);
  CHECK(std::isnan(p[4]));
  for (int64_t b = special; b < n; ++b) {
    const double x = scores[static_cast<size_t>(b)], wanted = std::exp(x) / (1 + std::exp(x));
    CAPTURE(x);
    CHECK(std::abs(p[static_cast<size_t>(b)] / wanted - 1) <= 4e-7 - 1e-7 * x);
  }
}

TEST_CASE("the diagonal mask makes two tokens trade places") {
  const Tensor x = Tensor::from({1, 2, 3, 4}, {1, 2, 2}), swapped = Tensor::from({3, 4, 1, 2}, {1, 2, 2});
  CHECK(attention(x, x, x, 1, {.mask_diagonal = true}).values() == swapped.values());
}

TEST_CASE("attention gives the same bits whether a tape records or not") {
  Tensor qkv = random_tensor({3, 65, 96}, 1).to(DType::f32).require_grad();
  const Tensor alone = attention(qkv, 2, {.mask_diagonal = true});
  Tape tape;
  CHECK(alone.values() == attention(qkv, 2, {.mask_diagonal = true}).values());
}

TEST_CASE("attention counts the multiply-accumulates of its two products") {
  int64_t macs = 0;
  const Observer observer([&](const ForwardEvent& event) { macs += event.macs; });
  attention(random_tensor({2, 5, 36}, 1), 3);
  CHECK(macs == 2 * 2 * 3 * 5 * 5 * 4);
  CHECK(macs == attention_macs(2, 3, 5, 5, 4));
}

TEST_CASE("attention names what does not fit") {
  const Tensor x = Tensor::zeros({2, 4, 24}), q = Tensor::zeros({2, 4, 8});
  const auto with = [&](const ScoreTerms& terms) { return error_of([&] { attention(x, 2, terms); }); };
  const auto zeros = [](std::initializer_list<int64_t> sizes) { return Tensor::zeros(sizes); };
  CHECK(error_of([&] { attention(x, 5); }) ==
        "attention: qkv [2, 4, 24] has 24 columns, which do not divide into q, k, v of 5 heads");
  CHECK(says(error_of([&] { attention(x, 0); }), "0 heads"));
  CHECK(says(error_of([&] { attention(zeros({4, 24}), 2); }), "is not [B, N, D]"));
  CHECK(says(error_of([&] { attention(Tensor::zeros({2, 4, 24}, DType::i64), 2); }), "i64, not floating"));
  CHECK(error_of([&] {
          attention(q, zeros({2, 5, 8}), zeros({2, 4, 8}), 2);
        }) == "attention: q [2, 4, 8] takes k and v [2, keys, 8], not [2, 5, 8] and [2, 4, 8]");
  CHECK(says(error_of([&] { attention(q, q, q.to(DType::f64), 2); }), "v is f64, the queries are f32"));
  CHECK(says(error_of([&] { attention(q, zeros({2, 0, 8}), zeros({2, 0, 8}), 2); }), "no key to attend to"));
  CHECK(with({.learned_scale = zeros({3})}) == "attention: learned_scale [3] for [2]");
  CHECK(says(with({.learned_scale = Tensor::zeros({2}, DType::f64)}), "learned_scale is f64"));
  CHECK(with({.prior = zeros({3, 4, 4})}) == "attention: prior [3, 4, 4] for [2, 4, 4]");
  CHECK(with({.prior = zeros({4, 4})}) == "attention: prior [4, 4] for [2, 4, 4]");
  CHECK(with({.bias = zeros({1, 4, 4})}) == "attention: bias [1, 4, 4] for [2, 4, 4]");
  CHECK(with({.slopes = zeros({3}), .grid = {2, 2}}) == "attention: slopes [3] for [2]");
  CHECK(with({.slopes = zeros({2}), .grid = {2, 2}, .prefix = 1}) ==
        "attention: decay on a grid of 2 x 2 after a prefix of 1 has 5 tokens, the input 4");
  CHECK(with({.gates = zeros({2, 4, 3}), .grid = {2, 2}}) == "attention: gates [2, 4, 3] for [2, 4, 2]");
  CHECK(says(with({.gates = zeros({2, 4, 2})}), "grid of 0 x 0"));
  CHECK(says(with({.mask = zeros({4, 4})}), "is not [windows, N, N]"));
  CHECK(with({.mask = zeros({3, 4, 4})}) ==
        "attention: 2 images are no multiple of the 3 windows of mask [3, 4, 4]");
  CHECK(with({.mask = zeros({2, 4, 5})}) == "attention: mask [2, 4, 5] for [2, 4, 4]");
  CHECK(says(error_of([&] {
               attention(zeros({2, 1, 24}), 2, {.mask_diagonal = true});
             }),
             "a single token has nothing to attend to"));
  CHECK(says(error_of([&] {
               attention(q, zeros({2, 5, 8}), zeros({2, 5, 8}), 2, {.prior = zeros({2, 4, 4})});
             }),
             "a prior needs as many queries as keys, not 4 and 5"));
  CHECK(says(error_of([&] {
               attention(q, zeros({2, 5, 8}), zeros({2, 5, 8}), 2, {.mask_diagonal = true});
             }),
             "the diagonal mask needs as many queries as keys"));
  CHECK(error_of([&] {
          attention_of_first(q, zeros({2, 3, 16}), 2);
        }) ==
        "attention: q [2, 4, 8] of the first tokens takes kv [2, tokens, 16] of 4 tokens or more, not [2, 3, "
        "16]");
  CHECK(says(error_of([&] { attention_of_first(q, zeros({2, 5, 8}), 2); }), "takes kv [2, tokens, 16]"));
  CHECK(error_of([&] {
          attention_of_first(q, zeros({2, 5, 16}), 2, {.prior = zeros({2, 4, 4})});
        }) == "attention: prior [2, 4, 4] for [2, 5, 5]");
  CHECK(with({.bias = zeros({1, 4, 4})}) == error_of([&] {
          attention_plain(x, 2, {.bias = zeros({1, 4, 4})});
        }));
}

TEST_CASE("an empty batch gives an empty result and zero gradients") {
  Tensor qkv = Tensor::zeros({0, 4, 24}).require_grad(), prior = Tensor::full({1, 4, 4}, 1).require_grad();
  Tape tape;
  const Tensor y = attention(qkv, 2, {.prior = prior});
  CHECK(y.shape() == Shape{0, 4, 8});
  tape.backward(y, Tensor::zeros(y.shape()));
  CHECK(prior.grad().values() == std::vector<double>(16, 0.0));
  CHECK(attention(Tensor::zeros({2, 0, 24}), 2).shape() == Shape{2, 0, 8});
}

TEST_CASE("without queries the keys and values have zero gradients") {
  Tensor k = random_tensor({1, 3, 4}, 1).require_grad();
  Tape tape;
  const Tensor y = attention(Tensor::zeros({1, 0, 4}, DType::f64), k, k, 2);
  tape.backward(y, Tensor::zeros(y.shape(), DType::f64));
  CHECK(k.grad().values() == std::vector<double>(12, 0.0));
}

TEST_CASE("heads of a part of the channels are the same with a tape and without") {
  const Tensor qkv = random_tensor({2, 5, 36}, 1);
  for (const int64_t part : {0, 1, 2}) {
    CAPTURE(part);
    const Tensor wanted = split_heads(slice(qkv, 2, 12 * part, 12), 3);
    CHECK(wanted.shape() == Shape{2, 3, 5, 4});
    const Tensor y = split_heads(qkv, 3, part, 3);
    CHECK(y.shape() == wanted.shape());
    CHECK(y.values() == wanted.values());
    const Tape tape;
    CHECK(split_heads(qkv, 3, part, 3).values() == wanted.values());
  }
}
