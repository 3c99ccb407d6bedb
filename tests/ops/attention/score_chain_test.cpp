#include "engine/ops/attention/score_chain.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/check/op_case.h"

using namespace tessera;

namespace {

constexpr int64_t n = 4, heads = 3, head = 1, image = 5;

// Tensors for every term at once, whose elements the test can change.
struct AllTerms {
  std::vector<double> scale = numbers({heads}, 1), prior = numbers({heads, n, n}, 2),
                      bias = numbers({heads, n, n}, 3), slopes = numbers({heads}, 4),
                      distance = numbers({n, n}, 5), gate = numbers({n}, 6), mask = numbers({2, n, n}, 7);
  bool mask_diagonal = false;

  static std::vector<double> numbers(const Shape& shape, uint64_t seed) {
    return random_tensor_away_from_zero(shape, seed).values();
  }

  BatchTerms<double> batch() const {
    BatchTerms<double> terms;
    terms.learned_scale = scale.data();
    terms.prior = prior.data();
    terms.prior_heads = heads;
    terms.bias = bias.data();
    terms.slopes = slopes.data();
    terms.slope_distance = terms.gate_distance = distance.data();
    terms.gates = gate.data();
    terms.alpha = 0.7;
    terms.mask = mask.data();
    terms.masks = 2;
    terms.mask_diagonal = mask_diagonal;
    return terms;
  }

  ScoreChain<double> chain() const { return {batch(), image, head, n, gate.data()}; }
};

double score(const ScoreChain<double>& chain, double raw, At at) {
  double s[1] = {raw};
  chain.forward(s, {at});
  return s[0];
}

// Of a score's gradient.
ChainShares<double> shares(const ScoreChain<double>& chain, double ds, double raw, At at) {
  ChainShares<double> to[1] = {{ds, 0, 0, 0, 0}};
  chain.backward({raw}, {at}, to);
  return to[0];
}

// d score / d x by central differences.
double slope(const AllTerms& terms, double& x, double& raw, At at) {
  constexpr double h = 1e-6;
  const double start = x;
  x = start + h;
  const double above = score(terms.chain(), raw, at);
  x = start - h;
  const double below = score(terms.chain(), raw, at);
  x = start;
  return (above - below) / (2 * h);
}

// A chain compiled for its terms computes what a chain that tests for them does.
template <ChainTerms terms> void check_known(const AllTerms& t) {
  BatchTerms<double> batch = t.batch();
  if (!may_have(terms, ChainTerms::prior)) batch.prior = nullptr;
  if (!may_have(terms, ChainTerms::bias)) batch.bias = nullptr;
  if (!may_have(terms, ChainTerms::fixed_decay)) batch.slopes = nullptr;
  if (!may_have(terms, ChainTerms::content_decay)) batch.gates = nullptr;
  if (!may_have(terms, ChainTerms::mask)) batch.mask = nullptr;
  CHECK(terms_of(batch) == terms);
  const ScoreChain<double> any(batch, image, head, n, t.gate.data());
  const ScoreChain<double, terms> known(batch, image, head, n, t.gate.data());
  const At at[1] = {{1, 2, n}};
  const double raw[1] = {0.3};
  double s[1] = {raw[0]};
  known.forward(s, at);
  CHECK(s[0] == score(any, raw[0], at[0]));
  ChainShares<double> to[1] = {{1, 0, 0, 0, 0}};
  known.backward(raw, at, to);
  const ChainShares<double> wanted = shares(any, 1, raw[0], at[0]);
  CHECK(to[0].ds == wanted.ds);
  CHECK(to[0].scale == wanted.scale);
  CHECK(to[0].prior == wanted.prior);
  CHECK(to[0].bias == wanted.bias);
  CHECK(to[0].gate == wanted.gate);
}

}  // namespace

TEST_CASE("score chain: one that knows its terms is as one that looks for them") {
  const AllTerms t;
  check_known<ChainTerms::plain>(t);
  check_known<ChainTerms::prior>(t);
  check_known<ChainTerms::bias>(t);
  check_known<ChainTerms::bias_and_mask>(t);
  check_known<ChainTerms::fixed_decay>(t);
  check_known<ChainTerms::content_decay>(t);
  check_known<ChainTerms::mask>(t);
}

TEST_CASE("score chain: the terms act in their order") {
  const AllTerms t;
  const At at{1, 2, n};
  const size_t element = 1 * n + 2, of_head = head * n * n + element;
  const double gates = 0.7 * t.distance[element] * (t.gate[1] + t.gate[2]) / 2;
  const double wanted = t.scale[head] * 0.3 * t.prior[of_head] + t.bias[of_head] -
                        t.slopes[head] * t.distance[element] - std::abs(gates) +
                        t.mask[(image % 2) * n * n + element];
  CHECK(score(t.chain(), 0.3, at) == doctest::Approx(wanted).epsilon(1e-14));
}

TEST_CASE("score chain: an absent term changes nothing") {
  BatchTerms<double> terms;
  terms.scale = 0.5;
  const ScoreChain<double> chain(terms, 0, 0, n, nullptr);
  CHECK(score(chain, 3, {1, 2, n}) == 1.5);
  const ChainShares<double> back = shares(chain, 2, 3, {1, 2, n});
  CHECK(back.ds == 2);
  CHECK(back.scale == 6);
  CHECK(back.prior == 0);
  CHECK(back.bias == 0);
  CHECK(back.gate == 0);
}

TEST_CASE("score chain: every share is the score's slope") {
  AllTerms t;
  double raw = 0.3;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const At at{i, j, n};
      const size_t element = static_cast<size_t>(head * n * n + at.element());
      const ChainShares<double> back = shares(t.chain(), 1, raw, at);
      CHECK(back.ds * t.scale[head] == doctest::Approx(slope(t, raw, raw, at)));
      CHECK(back.scale == doctest::Approx(slope(t, t.scale[head], raw, at)));
      CHECK(back.prior == doctest::Approx(slope(t, t.prior[element], raw, at)));
      CHECK(back.bias == doctest::Approx(slope(t, t.bias[element], raw, at)));
      const double of_gate = slope(t, t.gate[static_cast<size_t>(i)], raw, at);
      CHECK(back.gate == doctest::Approx(i == j ? of_gate / 2 : of_gate));  // it goes to g_i and to g_j
    }
}

TEST_CASE("score chain: nothing passes the diagonal mask") {
  AllTerms t;
  t.mask_diagonal = true;
  CHECK(score(t.chain(), 0.3, {2, 2, n}) == -std::numeric_limits<double>::infinity());
  const ChainShares<double> back = shares(t.chain(), 1, 0.3, {2, 2, n});
  CHECK(back.ds == 0);
  CHECK(back.scale == 0);
  CHECK(back.prior == 0);
  CHECK(back.bias == 0);
  CHECK(back.gate == 0);
  CHECK(shares(t.chain(), 1, 0.3, {2, 1, n}).bias == 1);
}
