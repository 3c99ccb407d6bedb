#include "engine/ops/attention/attention.h"

#include "engine/check/op_case.h"

namespace tessera {

namespace {

// One setting of attention. The case's inputs are qkv, or q, k and v, then the learned terms that are on.
struct Setting {
  std::string variant;
  int64_t images = 2, heads = 2, tokens = 5, head_dim = 3;
  int64_t apart_keys = 0;  // if positive, q, k and v are separate, with so many keys
  int64_t first = 0;       // if positive, the queries are those of so many of the tokens
  bool learned_scale = false, bias = false, slopes = false, gates = false, mask_diagonal = false;
  int64_t prior_heads = 0, windows = 0;
  double masked = -std::numeric_limits<double>::infinity();  // scores between windows
  Grid grid = {};
  int64_t prefix = 0;
  double alpha = 1;
  bool use_distance = true;
};

std::vector<Tensor> inputs_of(const Setting& s) {
  const int64_t width = s.heads * s.head_dim, n = s.tokens;
  std::vector<Tensor> inputs;
  if (s.apart_keys > 0)
    inputs = {random_tensor({s.images, n, width}, 1), random_tensor({s.images, s.apart_keys, width}, 2),
              random_tensor({s.images, s.apart_keys, width}, 3)};
  else if (s.first > 0)
    inputs = {random_tensor({s.images, s.first, width}, 1), random_tensor({s.images, n, 2 * width}, 2)};
  else
    inputs = {random_tensor({s.images, n, 3 * width}, 1)};
  if (s.learned_scale) inputs.push_back(random_tensor_away_from_zero({s.heads}, 4));
  if (s.prior_heads > 0) inputs.push_back(random_tensor({s.prior_heads, n, n}, 5));
  if (s.bias) inputs.push_back(random_tensor({s.heads, n, n}, 6));
  if (s.gates) inputs.push_back(random_gates({s.images, n, s.heads}, 7));
  return inputs;
}

// Shifted windows: image b and the images b + W, b + 2 W ... see only keys of their own half.
Tensor window_mask(int64_t windows, int64_t n, double masked) {
  Tensor mask = Tensor::zeros({windows, n, n}, DType::f64);
  for (int64_t w = 0; w < windows; ++w)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if ((i <= w) != (j <= w)) mask.data<double>()[(w * n + i) * n + j] = masked;
  return mask;
}

ScoreTerms terms_of(const Setting& s, std::span<const Tensor> learned, const Tensor& like) {
  size_t next = 0;
  ScoreTerms terms;
  terms.scale = 0.7;
  if (s.learned_scale) terms.learned_scale = learned[next++];
  if (s.prior_heads > 0) terms.prior = learned[next++];
  if (s.bias) terms.bias = learned[next++];
  if (s.gates) terms.gates = learned[next++];
  if (s.slopes) {
    terms.slopes = Tensor::empty({s.heads}, DType::f64);
    for (int64_t h = 0; h < s.heads; ++h) terms.slopes.data<double>()[h] = 0.25 * static_cast<double>(h + 1);
    terms.slopes = beside(terms.slopes, like);
  }
  if (s.windows > 0) terms.mask = beside(window_mask(s.windows, s.tokens, s.masked), like);
  terms.mask_diagonal = s.mask_diagonal;
  terms.grid = s.grid;
  terms.prefix = s.prefix;
  terms.alpha = s.alpha;
  terms.use_distance = s.use_distance;
  return terms;
}

OpCase case_of(const Setting& s) {
  OpCase c{"attention", s.variant, inputs_of(s), nullptr};
  if (s.apart_keys > 0) {
    c.function = [=](std::span<const Tensor> in) {
      return attention(in[0], in[1], in[2], s.heads, terms_of(s, in.subspan(3), in[0]));
    };
    c.plain = [=](std::span<const Tensor> in) {
      return attention_plain(in[0], in[1], in[2], s.heads, terms_of(s, in.subspan(3), in[0]));
    };
  } else if (s.first > 0) {
    c.function = [=](std::span<const Tensor> in) {
      return attention_of_first(in[0], in[1], s.heads, terms_of(s, in.subspan(2), in[0]));
    };
    c.plain = [=](std::span<const Tensor> in) {
      return attention_of_first_plain(in[0], in[1], s.heads, terms_of(s, in.subspan(2), in[0]));
    };
  } else {
    c.function = [=](std::span<const Tensor> in) {
      return attention(in[0], s.heads, terms_of(s, in.subspan(1), in[0]));
    };
    c.plain = [=](std::span<const Tensor> in) {
      return attention_plain(in[0], s.heads, terms_of(s, in.subspan(1), in[0]));
    };
  }
  if (s.images * s.heads == 1) {
    c.unsplit_forward = "one thread computes the one head";
    if (!s.bias && s.prior_heads == 0) c.unsplit_backward = c.unsplit_forward;
  }
  return c;
}

constexpr Grid two_by_three{2, 3};

// The scale, and each term of pairs alone or with one other.
std::vector<Setting> one_term() {
  return {
      {.variant = "fixed scale", .heads = 3, .tokens = 7, .head_dim = 8},
      {.variant = "one token", .heads = 3, .tokens = 1},
      {.variant = "learned scale", .tokens = 17, .head_dim = 16, .learned_scale = true},
      {.variant = "diagonal mask", .heads = 3, .tokens = 17, .mask_diagonal = true},
      {.variant = "LSA", .tokens = 5, .head_dim = 16, .learned_scale = true, .mask_diagonal = true},
      {.variant = "prior", .heads = 3, .tokens = 7, .prior_heads = 3},
      {.variant = "prior for all heads", .heads = 3, .prior_heads = 1},
      {.variant = "bias", .tokens = 7, .head_dim = 8, .bias = true},
      {.variant = "prior and bias, more images than chunks",
       .images = 10,
       .tokens = 3,
       .bias = true,
       .prior_heads = 2},
      {.variant = "fixed decay", .heads = 3, .tokens = 6, .slopes = true, .grid = two_by_three},
      {.variant = "fixed decay after a class token",
       .tokens = 7,
       .slopes = true,
       .grid = two_by_three,
       .prefix = 1},
      {.variant = "content decay",
       .heads = 3,
       .tokens = 6,
       .gates = true,
       .grid = two_by_three,
       .alpha = 0.6},
      {.variant = "content decay after two tokens",
       .tokens = 8,
       .gates = true,
       .grid = two_by_three,
       .prefix = 2},
      {.variant = "content decay without distance",
       .tokens = 7,
       .gates = true,
       .grid = two_by_three,
       .prefix = 1,
       .use_distance = false},
  };
}

// Shifted windows.
std::vector<Setting> windows() {
  return {
      {.variant = "windows", .images = 4, .tokens = 5, .windows = 2},
      {.variant = "biased windows", .tokens = 16, .head_dim = 32, .bias = true, .windows = 2},
      // Swin's own windows, 4 x 4 tokens, whose bf16 kernels keep all scores in registers.
      {.variant = "windows of 16 tokens", .tokens = 16, .head_dim = 32, .windows = 2},
      // With Swin's -100 and LSA's diagonal, exp of every score of the first or last token is 0 in f32.
      {.variant = "a token alone in its window",
       .images = 3,
       .tokens = 4,
       .head_dim = 8,
       .learned_scale = true,
       .mask_diagonal = true,
       .windows = 3,
       .masked = -100},
      {.variant = "a token alone in its window, content decay",
       .images = 3,
       .tokens = 4,
       .gates = true,
       .mask_diagonal = true,
       .windows = 3,
       .masked = -100,
       .grid = {2, 2}},
  };
}

// Separate queries and keys, and every term at once.
std::vector<Setting> combinations() {
  return {
      {.variant = "q, k, v apart",
       .heads = 3,
       .tokens = 3,
       .head_dim = 8,
       .apart_keys = 7,
       .learned_scale = true},
      {.variant = "one query", .tokens = 1, .apart_keys = 17},
      {.variant = "every term, apart",
       .images = 2,
       .tokens = 7,
       .apart_keys = 7,
       .learned_scale = true,
       .bias = true,
       .slopes = true,
       .gates = true,
       .prior_heads = 2,
       .windows = 2,
       .grid = two_by_three,
       .prefix = 1},
      {.variant = "every term",
       .images = 4,
       .heads = 3,
       .tokens = 7,
       .learned_scale = true,
       .bias = true,
       .slopes = true,
       .gates = true,
       .mask_diagonal = true,
       .prior_heads = 1,
       .grid = two_by_three,
       .prefix = 1,
       .alpha = -0.8,
       .use_distance = false},
      {.variant = "more than one block of queries",
       .images = 1,
       .tokens = 41,
       .learned_scale = true,
       .gates = true,
       .mask_diagonal = true,
       .prior_heads = 1,
       .grid = {5, 8},
       .prefix = 1},
  };
}

// The queries of the first tokens alone.
std::vector<Setting> first_tokens() {
  return {
      {.variant = "the first of 17 tokens", .tokens = 17, .head_dim = 16, .first = 1},
      {.variant = "the first token under LSA",
       .tokens = 9,
       .head_dim = 16,
       .first = 1,
       .learned_scale = true,
       .mask_diagonal = true},
      {.variant = "the first three tokens under every term",
       .images = 4,
       .heads = 3,
       .tokens = 7,
       .first = 3,
       .learned_scale = true,
       .bias = true,
       .slopes = true,
       .gates = true,
       .mask_diagonal = true,
       .prior_heads = 3,
       .windows = 2,
       .masked = -3,
       .grid = two_by_three,
       .prefix = 1},
  };
}

// Sizes at which a GPU kernel takes another path.
std::vector<Setting> gpu_blocks() {
  return {
      // More queries than a GPU's block and more keys than its tile hold, in bf16 too.
      {.variant = "LSA of 97 tokens",
       .images = 1,
       .heads = 1,
       .tokens = 97,
       .head_dim = 6,
       .learned_scale = true,
       .mask_diagonal = true},
      {.variant = "every term of 97 tokens",
       .images = 1,
       .heads = 1,
       .tokens = 97,
       .learned_scale = true,
       .bias = true,
       .slopes = true,
       .gates = true,
       .prior_heads = 1,
       .grid = {8, 12},
       .prefix = 1},
      // bf16 heads that a GPU's block holds whole, with the last block of keys full and nearly empty, with a
      // scale that has a gradient and with one that has none, and heads that a block does not hold. Four
      // blocks, because the emulator runs each in another order of its threads.
      {.variant = "LSA of 65 tokens",
       .heads = 1,
       .tokens = 65,
       .head_dim = 16,
       .learned_scale = true,
       .mask_diagonal = true},
      {.variant = "80 tokens", .tokens = 80, .head_dim = 24, .mask_diagonal = true},
      {.variant = "apart, 16 tokens", .tokens = 16, .head_dim = 32, .apart_keys = 16, .learned_scale = true},
      {.variant = "wide heads", .images = 1, .heads = 2, .tokens = 70, .head_dim = 36, .learned_scale = true},
  };
}

}  // namespace

OpCases attention_cases() {
  OpCases cases;
  for (const auto& settings : {one_term(), windows(), combinations(), first_tokens(), gpu_blocks()})
    for (const Setting& setting : settings) cases.push_back(case_of(setting));
  return cases;
}

}  // namespace tessera
