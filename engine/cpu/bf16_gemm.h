#pragma once

// Products of bf16 matrices on one core, summed in float, by the processor's instructions for them:
// AVX-512-BF16 multiplies two numbers a lane, twice the operations of a float product, and AMX-BF16 whole
// tiles. Both read bf16 in pairs that follow one another along the depth of the product, so each factor lies
// in pairs or is packed into them. A processor without either widens to float (panel_gemm.h).

#include <array>
#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

inline constexpr int64_t bf16_lanes = 16;  // columns of a vector of float sums
inline constexpr int64_t bf16_panel = 32;  // columns of a panel, the width at which products are fastest

// The number of pairs that a depth has; an odd depth ends with a zero.
constexpr int64_t pairs_of(int64_t depth) { return (depth + 1) / 2; }

constexpr int64_t whole_bf16_vectors(int64_t columns) {
  return (columns + bf16_lanes - 1) / bf16_lanes * bf16_lanes;
}
constexpr int64_t whole_bf16_panels(int64_t columns) {
  return (columns + bf16_panel - 1) / bf16_panel * bf16_panel;
}

// The left factor: the numbers 2 k and 2 k + 1 of row i lie side by side at data + i * row + k * pair. A row
// may lie in `parts` of equal length, each `part` numbers after the one before: those of a convolution's
// window do.
struct LeftPairs {
  const bf16* data;
  int64_t row, pair;
  int64_t parts = 1, part = 0;
};

// The call returns the rows of x from row r on; each has one part.
constexpr LeftPairs from_row(const LeftPairs& x, int64_t r) { return {x.data + r * x.row, x.row, x.pair}; }

// The right factor: the numbers 2 k and 2 k + 1 of column j lie side by side at data + k * pair + 2 j.
struct RightPairs {
  const bf16* data;
  int64_t pair;
};

// Row i begins at data + i * row; the null `data` of a start means zeros.
struct FloatRows {
  const float* data;
  int64_t row;
};
struct FloatTarget {
  float* data;
  int64_t row;
  operator FloatRows() const { return {data, row}; }
};

// What the numbers of a product become before they are rounded. The result is within 0.501 units of its last
// place of the function's value; GELU has the error function.
enum class Bf16Function : uint8_t { identity, relu, gelu, gelu_tanh, silu, sigmoid };

// A row of `count` windows of a depthwise convolution, for `columns` channels, at most 32. rows [kernel] are
// those of the map that the windows read, each `width` pixels that are `pixel` numbers apart. Tap (u, v) of
// window i is multiplied by the pixel i * stride + v - padding of rows[u], if there is one. taps [kernel,
// pairs, 32, 2]: for each column of the kernel the taps of two rows side by side, a zero after an odd one.
// start [32]. The sums of window i are written at y + i * step or, with `add`, added to what is there,
// rounded. Column j is a filter of the channel order[2 j] of the 32 that begin at the pixel, and order[2 j +
// 1] is 32 more; order [64].
struct DepthwiseRow {
  int64_t count, columns;
  const bf16* const* rows;
  int64_t width, pixel, padding;
  const bf16* taps;
  const float* start;
  const int16_t* order;
  bf16* y;
  int64_t step;
  bool add;
};
using DepthwiseFunction = void (*)(const DepthwiseRow&);

// The gradients of a depthwise convolution's taps for `columns` channels, at most 32, of one filter each. dy
// [windows_h, windows_w] are the windows of an image, `step` numbers apart; row u of the map that row i of
// windows reads is rows[i * stride + u], `width` pixels that are `pixel` numbers apart, and zeros where it
// lies beyond the map; `zeros` is as long as the longer row of both. order [64] is that of DepthwiseRow for
// one filter. Tap (u, v) has 32 sums at sums + (u * kernel + v) * tap, which are added to.
struct DepthwiseImage {
  int64_t windows_h, windows_w, columns;
  const bf16* dy;
  int64_t step;
  const bf16* const* rows;
  const bf16* zeros;
  int64_t width, pixel, padding;
  const int16_t* order;
  float* sums;
  int64_t tap;
};
using DepthwiseGradient = void (*)(const DepthwiseImage&);

// A row of `count` squares of minimal filtering (engine/ops/conv_winograd.h), which are taken to their
// points. Square i reads the pixels 2 i - padding to 2 i + 3 - padding of four rows, [width, channels];
// beyond them there are zeros. The channels are whole panels. Point p is written at to + p * plane + i *
// channels.
struct PixelSquares {
  int64_t count, width, channels, padding;
  const bf16* const* rows;
  int64_t plane;
  bf16* to;
};

// Such a row of squares, whose outputs are made from their points for a panel of columns. `from` holds the
// numbers of a point, [squares, 32], those of the next one `plane` after them. An output is start [32] plus
// what its points make and, with `add`, plus what is there, rounded once. The outputs are two rows of `width`
// pixels, which are `pixel` numbers apart; the second row is null where the map has none.
struct OutputSquares {
  int64_t width;
  const float* from;
  int64_t plane;
  const float* start;
  bool add;
  std::array<bf16*, 2> rows;
  int64_t pixel;
};

// Rows of a layer norm, [rows, width], and what their gradients are made of: weight [width]; mean, rstd
// [rows], rstd = 1 / sqrt(variance + eps). dx is written or, with `add`, added to; null: not wanted. The
// gradients of weight and bias are added to dweight and dbias, [width].
struct LayerNormRows {
  const bf16 *dy, *x, *weight;
  const float *mean, *rstd;
  bool add;
  bf16* dx;
  float *dweight, *dbias;
};

// Attention over a window of 16 tokens of one head, each of them d numbers, d a multiple of 32 up to 64.
// Token i begins at data + i * stride. A target is written or, with `add`, added to; null: not wanted.
inline constexpr int64_t window_tokens = 16;
struct WindowRows {
  const bf16* data;
  int64_t stride;
};
struct WindowTarget {
  bf16* data;
  int64_t stride;
  bool add;
};

// The backward pass reads the scores s and dP = dy v^T, [16, 16], and the log-sum-exp of the rows of s.
struct WindowPass {
  int64_t d;
  const float *s, *dp, *lse;
  WindowRows q, k, dy;
  float factor;  // of the scores
  bool learns_factor;
  WindowTarget dq, dk, dv;
  float* ds_sum;  // [16, 16], to which ds is added; or null
};

// Rows of the scores of a head that have no terms but a factor and the diagonal mask: s = factor q k^T, where
// row i is that of query first + i. There are at most 80 keys of d numbers. q [rows, d], k [d, keys] in pairs
// of d. With mask_diagonal, for no more queries than keys, the score of a query and its own key is -inf.
// Where one key follows whole vectors of them, k ends before it, and it is last_key [d]; otherwise that is
// null.
inline constexpr int64_t most_row_keys = 80;
struct ScoreRows {
  int64_t rows, keys, d;
  LeftPairs q;
  RightPairs k;
  const bf16* last_key;
  float factor;
  int64_t first;
  bool mask_diagonal;
};
constexpr bool one_key_follows(int64_t keys) { return keys > bf16_lanes && keys % bf16_lanes == 1; }

// The backward pass reads dy [rows, d] and v, of which dP = dy v^T is made, and the log-sum-exp of each row,
// [rows]. v and last_value lie as k and last_key do.
struct GradientRows {
  LeftPairs dy;
  RightPairs v;
  const bf16* last_value;
  const float* lse;
};

// The probabilities P and the gradients ds of the scores as factors of products. Both lie in pairs of rows,
// [pairs of rows, keys, 2], `pair` from one pair to the next, and an odd last row is paired with zeros. ds
// also lies in rows, [rows, keys], `row` from one to the next, and a zero follows an odd number of keys.
// There is room for whole vectors of keys, and any numbers may follow.
struct ScoreFactors {
  bf16 *p_pairs, *ds_pairs;
  int64_t pair;
  bf16* ds;
  int64_t row;
};

// The functions of one kind of processor.
struct Bf16Kernels {
  const char* name;  // "AVX-512-BF16"

  // The pairs of a depth that a product multiplies at once: it is fastest for a whole number of such steps.
  int64_t pairs_at_once;

  // C [m, columns] = start + alpha A B; columns are whole vectors. `start` may be C itself.
  void (*multiply)(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b, float alpha,
                   FloatRows start, FloatTarget c);

  // c [m, columns] = start + A B, rounded once, for a panel or a vector of columns; row i begins at c + i *
  // stride.
  void (*multiply_rounded)(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b,
                           FloatRows start, bf16* c, int64_t stride);

  // A right factor from B [depth, columns] whose rows are `stride` apart: the rows are interleaved two by
  // two, with zeros up to a whole vector of columns and an even depth. to [pairs, columns, 2], `pair` from
  // row to row.
  void (*interleave)(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                     int64_t pair);

  // The same from B's transpose [columns, depth].
  void (*interleave_transposed)(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                                int64_t pair);

  // A left factor [m, depth] from its transpose [depth, m], in the order that this processor reads fastest;
  // `to` has room for left_elements(depth, m).
  LeftPairs (*left_of_transposed)(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to);

  // to [rows, columns] = factor of the row times `from` or, with `add`, += it, rounded once; row i of `to`
  // begins at to + i * stride, and its factor is factors[i * step].
  void (*store)(int64_t rows, int64_t columns, FloatRows from, const float* factors, int64_t step, bool add,
                bf16* to, int64_t stride);

  // y = f(z) and, unless null, slope = f'(z), both rounded, for z [rows, columns], at most a panel of
  // columns; row i of y and slope begins i * stride numbers after the first.
  void (*activate)(Bf16Function f, int64_t rows, int64_t columns, FloatRows z, bf16* y, bf16* slope,
                   int64_t stride);

  // y [n] = f(scale x + shift) or, unless the residual [n] is null, f(scale x + shift + residual), whose
  // first sum and second are rounded. y may be x. scale and shift [columns] are those of the first numbers,
  // of the next, and so on.
  void (*norm)(Bf16Function f, int64_t n, int64_t columns, const float* scale, const float* shift,
               const bf16* x, const bf16* residual, bf16* y);

  // y [rows, width] = (x - mean) rstd weight + bias, and the mean and 1 / sqrt(variance + eps) of each row.
  // weight, bias [width]; mean, rstd [rows].
  void (*layer_norm)(int64_t rows, int64_t width, const bf16* x, const bf16* weight, const bf16* bias,
                     float eps, bf16* y, float* mean, float* rstd);
  void (*layer_norm_backward)(int64_t rows, int64_t width, const LayerNormRows& of);

  // The functions for windows of kernel x kernel, `stride` pixels apart; null if there is none.
  DepthwiseFunction (*depthwise)(int64_t kernel, int64_t stride);
  DepthwiseGradient (*depthwise_gradient)(int64_t kernel, int64_t stride);

  // The additions of minimal filtering; null where they would take longer than the products that they save.
  void (*pixels_to_points)(const PixelSquares&);
  void (*outputs_of_points)(const OutputSquares&);

  // Attention's softmax without its division: p [rows, columns] = exp(s - maximum of the row), rounded, whose
  // rows are `stride` apart, and the maxima and the sums before rounding, [rows]; columns are whole vectors.
  void (*softmax)(int64_t rows, int64_t columns, FloatRows s, bf16* p, int64_t stride, float* maxima,
                  float* sums);

  // Its backward pass: P = exp(s - lse) and ds = P (dP - rowsum(P dP)), rounded to p and ds; without ds, that
  // overwrites dP in floats. P is divided by its sum, as in softmax_backward() of attention/softmax_rows.h. s
  // is overwritten; shares and means [rows] are memory.
  void (*softmax_backward)(int64_t rows, int64_t columns, FloatTarget s, FloatTarget dp, const float* lse,
                           bf16* p, bf16* ds, int64_t stride, float* shares, float* means);

  // These two functions make the scores as well, which stay in registers. probabilities() is softmax() of
  // these rows; a zero and then any numbers follow an odd number of keys. score_gradients() writes P and ds
  // of softmax_backward() as factors of products. For heads wider than most_row_width tiles are faster.
  int64_t most_row_width;
  void (*probabilities)(const ScoreRows& of, bf16* p, int64_t stride, float* maxima, float* sums);
  void (*score_gradients)(const ScoreRows& of, const GradientRows& from, const ScoreFactors& to);

  // Attention over a window: s [16, 16] = factor a b^T; y = softmax(s) v, with the maxima and sums of
  // softmax(), [16]; and dq = factor ds k, dk = factor ds^T q, dv = P^T dy, with P and ds of
  // softmax_backward(). The last one returns the gradient of a factor that is learned, the sum of the numbers
  // of (ds k) q; otherwise 0.
  void (*window_scores)(int64_t d, const WindowRows& a, const WindowRows& b, float factor, float* s);
  void (*window_values)(int64_t d, const float* s, const WindowRows& v, float* maxima, float* sums,
                        const WindowTarget& y);
  float (*window_gradients)(const WindowPass& of);
};

constexpr int64_t left_elements(int64_t depth, int64_t m) {
  return whole_bf16_vectors(pairs_of(depth)) * 2 * whole_bf16_vectors(m);
}

// Those of this processor, or of the one that TESSERA_CPU names; null where it has no instructions for bf16.
const Bf16Kernels* bf16_kernels();

// What each of the two kinds has; null in a build for another architecture.
const Bf16Kernels* avx512_bf16_kernels();
const Bf16Kernels* amx_bf16_kernels();

}  // namespace tessera
