// Attention in bf16 by the kernels that the processor has for short heads.

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "engine/check/gradient_check.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/elementwise.h"
#include "tests/ops/bf16_kinds.h"
#include "tests/ops/gradient_of.h"

using namespace tessera;

namespace {

using Numbers = std::vector<bf16>;

Numbers random_numbers(int64_t n, uint64_t seed) {
  const std::vector<double> from = random_tensor({n}, seed).values();
  return {from.begin(), from.end()};
}

// A head's operands: as they lie, and the keys and values as right factors.
struct Head {
  int64_t rows, keys, d;
  Numbers q = random_numbers(rows * d, 1), k = random_numbers(keys * d, 2), v = random_numbers(keys * d, 3),
          dy = random_numbers(rows * d, 4);
  Numbers k_pairs = Numbers(static_cast<size_t>(d * whole_bf16_vectors(keys))), v_pairs = k_pairs;

  Head(const Bf16Kernels& kernels, int64_t rows_of, int64_t keys_of, int64_t d_of)
      : rows(rows_of), keys(keys_of), d(d_of) {
    const int64_t in_pairs = keys - (one_key_follows(keys) ? 1 : 0);
    kernels.interleave_transposed(d, in_pairs, k.data(), d, k_pairs.data(), pair());
    kernels.interleave_transposed(d, in_pairs, v.data(), d, v_pairs.data(), pair());
  }

  int64_t pair() const { return 2 * whole_bf16_vectors(keys); }
  const bf16* last(const Numbers& x) const {
    return one_key_follows(keys) ? x.data() + (keys - 1) * d : nullptr;
  }

  // x y^T of one row and one key, in double.
  double product(const Numbers& x, int64_t i, const Numbers& y, int64_t j) const {
    double sum = 0;
    for (int64_t n = 0; n < d; ++n)
      sum +=
          double(float(x[static_cast<size_t>(i * d + n)])) * double(float(y[static_cast<size_t>(j * d + n)]));
    return sum;
  }
};

// P and ds [rows, keys] in double.
struct Expected {
  std::vector<double> p, ds, log_sum_exp;

  Expected(const Head& h, double factor, int64_t first, bool mask_diagonal) {
    for (int64_t i = 0; i < h.rows; ++i) {
      std::vector<double> power, gradient;
      double sum = 0, mean = 0;
      for (int64_t j = 0; j < h.keys; ++j) {
        const bool masked = mask_diagonal && first + i == j;
        power.push_back(masked ? 0 : std::exp(factor * h.product(h.q, i, h.k, j)));
        gradient.push_back(h.product(h.dy, i, h.v, j));
        sum += power.back();
        mean += power.back() * gradient.back();
      }
      mean /= sum;
      log_sum_exp.push_back(std::log(sum));
      for (size_t j = 0; j < power.size(); ++j) {
        p.push_back(power[j] / sum);
        ds.push_back(p.back() * (gradient[j] - mean));
      }
    }
  }
};

// Rounding to bf16 moves a number by at most 1/256 of it, as does a float's error where it decides.
bool is_rounded(bf16 x, double exact) {
  return std::abs(double(float(x)) - exact) <= std::abs(exact) / 250 + 1e-6;
}

void check_rows(const Bf16Kernels& kernels, int64_t rows, int64_t keys, int64_t d, bool mask_diagonal) {
  const Head h(kernels, rows, keys, d);
  const int64_t first = mask_diagonal ? keys - rows : 0, stride = whole_bf16_vectors(keys) + 8;
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const Expected expected(h, double(factor), first, mask_diagonal);
  const ScoreRows of{rows,        keys,   d,     {h.q.data(), d, 2}, {h.k_pairs.data(), h.pair()},
                     h.last(h.k), factor, first, mask_diagonal};
  const size_t room = static_cast<size_t>((rows + 1) * stride);
  Numbers p(room, bf16(7.0f)), p_pairs = p, ds = p, ds_pairs = p;
  std::vector<float> maxima(static_cast<size_t>(rows)), sums = maxima, lse = maxima;
  kernels.probabilities(of, p.data(), stride, maxima.data(), sums.data());
  for (size_t i = 0; i < lse.size(); ++i) {
    lse[i] = maxima[i] + std::log(sums[i]);
    CHECK(double(lse[i]) == doctest::Approx(expected.log_sum_exp[i]).epsilon(1e-5));
  }
  kernels.score_gradients(of, {{h.dy.data(), d, 2}, {h.v_pairs.data(), h.pair()}, h.last(h.v), lse.data()},
                          {p_pairs.data(), ds_pairs.data(), 2 * stride, ds.data(), stride});
  int64_t wrong_p = 0, wrong_ds = 0, wrong_pairs = 0, wrong_zeros = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < keys; ++j) {
      const auto row = static_cast<size_t>(i), in_row = static_cast<size_t>(i * stride + j),
                 in_pairs = static_cast<size_t>(i / 2 * 2 * stride + 2 * j + i % 2),
                 at = static_cast<size_t>(i * keys + j);
      wrong_p += !is_rounded(p[in_row], expected.p[at] * double(sums[row]));
      wrong_ds += !is_rounded(ds[in_row], expected.ds[at]);
      wrong_pairs +=
          !is_rounded(p_pairs[in_pairs], expected.p[at]) || float(ds_pairs[in_pairs]) != float(ds[in_row]);
      if (rows % 2 == 1 && i + 1 == rows)
        wrong_zeros += float(p_pairs[in_pairs + 1]) != 0 || float(ds_pairs[in_pairs + 1]) != 0;
      if (keys % 2 == 1 && j + 1 == keys)
        wrong_zeros += float(p[in_row + 1]) != 0 || float(ds[in_row + 1]) != 0;
    }
  CHECK(wrong_p == 0);
  CHECK(wrong_ds == 0);
  CHECK(wrong_pairs == 0);
  CHECK(wrong_zeros == 0);
}

}  // namespace

TEST_CASE("bf16 products: rows of scores in registers become probabilities and gradients") {
  for_every_kind([](const Bf16Kernels& kernels) {
    for (const int64_t keys : {1, 2, 15, 16, 17, 33, 40, 49, 64, 65, 66, 80})
      for (const int64_t rows : {1, 2, 3, 4, 5, 12, 15})
        for (const int64_t d : {2, 16, 40})
          for (const bool mask_diagonal : {false, true}) {
            if (mask_diagonal && (rows > keys || keys == 1)) continue;
            CAPTURE(keys);
            CAPTURE(rows);
            CAPTURE(d);
            CAPTURE(mask_diagonal);
            check_rows(kernels, rows, keys, d, mask_diagonal);
          }
  });
}

TEST_CASE("windows of 16 tokens have the gradient of any one operand, and add it to another's") {
  const auto wide = [](uint64_t seed) { return random_tensor({3, 16, 64}, seed).to(DType::bf16); };
  const Tensor operands[] = {wide(1), wide(2), wide(3)};
  for (size_t at = 0; at < 12; ++at) {
    const size_t which = at / 4;
    const int64_t heads = 1 + static_cast<int64_t>(at % 2);  // of 64 and of 32 numbers
    const bool adds = at % 4 < 2;                            // to the gradient that a sum brings
    CAPTURE(which);
    CAPTURE(heads);
    CAPTURE(adds);
    const auto gradient = [&](DType dtype, const auto& attend) {
      return gradient_of(operands[which].to(dtype), [&](const Tensor& x) {
        Tensor in[3];
        for (size_t i = 0; i < 3; ++i) in[i] = i == which ? x : operands[i].to(dtype);
        const Tensor y = attend(in[0], in[1], in[2], heads);
        return adds ? add(y, x) : y;
      });
    };
    const Tensor fused = gradient(DType::bf16, [](auto... x) { return attention(x...); });
    const Tensor plain = gradient(DType::f64, [](auto... x) { return attention_plain(x...); });
    CHECK(relative_error(fused, plain) < 0.03);
  }
}
