#include <algorithm>
#include <array>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/linear_bf16.h"
#include "engine/ops/linear_dz.h"
#include "engine/ops/linear_tiles.h"

// As linear_cpu.cpp, with the products of engine/cpu/bf16_gemm.h: x, dy and the weight are read as they are
// stored, and what is written is rounded once, from sums in float.

namespace tessera {

namespace {

using namespace linear_tiles;

constexpr int of_left = 10, of_right = 11;  // keys of a thread's scratch memory

// y = F(z) and, unless null, slope = F'(z) for a block of z, some rows at a time, so that both wait in the
// first cache to be rounded.
template <class F>
void activate_rows(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* z, bf16* y,
                   bf16* slope, int64_t stride) {
  constexpr int64_t at_once = 8;
  alignas(64) std::array<float, at_once * bf16_panel> values, slopes;
  for (int64_t i = 0; i < rows; i += at_once, z += at_once * bf16_panel) {
    const int64_t some = std::min(at_once, rows - i), n = some * bf16_panel;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) values[static_cast<size_t>(j)] = F::value(z[j]);
    store_block(kernels, some, columns, values.data(), false, y + i * stride, stride);
    if (!slope) continue;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) slopes[static_cast<size_t>(j)] = F::slope(z[j]);
    store_block(kernels, some, columns, slopes.data(), false, slope + i * stride, stride);
  }
}

// The same by the processor's function where it has one.
void activate_block(const Bf16Kernels& kernels, Activation f, int64_t rows, int64_t columns, const float* z,
                    bf16* y, bf16* slope, int64_t stride) {
  if (const auto function = bf16_function(f))
    return kernels.activate(*function, rows, columns, {z, bf16_panel}, y, slope, stride);
  with_activation(f, [&]<class F>(F) { activate_rows<F>(kernels, rows, columns, z, y, slope, stride); });
}

// Packs op(B) [depth, n] on all threads.
void pack_all(const Bf16Kernels& kernels, int64_t depth, int64_t n, const Factor<bf16>& b, bf16* panels) {
  parallel_for(n, bf16_panel, [&](int64_t j, int64_t end) {
    for (; j < end; j += bf16_panel) pack_bf16_panel(kernels, depth, n, b, j, panels);
  });
}

// The rows of x and dz that a product for dweight multiplies at once.
int64_t rows_at_once(const Bf16Kernels& kernels) { return 2 * chunk_length(kernels.pairs_at_once, 2); }

// What the backward pass reads and writes. The sums of dweight have rows of `width` floats.
struct BackwardPass {
  const Bf16Kernels& kernels;
  LinearSize size;
  LinearDz<bf16> dz_of;
  const bf16* x;
  Target<bf16> dx;
  const bf16* weight;  // packed in panels
  bf16* x_panels;      // where pack_rows() leaves all of x for slab(), if the rows are few
  int64_t width;
  bool dx_follows;  // dx is made after every dz

  int64_t rows_of_tile(int64_t rows) const {
    return rows_a_tile(rows, 288, std::max(least_rows(), rows_at_once(kernels)));
  }

  void input_gradient(int64_t row, int64_t rows, const bf16* dz) const {
    const LeftPairs left = left_factor<of_left>(kernels, rows, size.out, {dz, size.out});
    multiply_bf16_panels(kernels, rows, size.in, size.out, left, weight, nullptr, dx.add,
                         dx.data + row * size.in, size.in);
  }

  // sum [outs, width] += dz^T x for some rows of x and the first `outs` columns of dz; `first` writes the sum
  // instead.
  void weight_gradient(int64_t row, int64_t rows, const bf16* dz, int64_t outs, bool first,
                       float* sum)  // NOLINT(readability-non-const-parameter): a FloatTarget writes it
      const {
    bf16* panels = thread_scratch<bf16, of_right>(bf16_packed_elements(rows, size.in));
    pack_bf16_panels(kernels, rows, size.in, {x + row * size.in, size.in}, panels);
    const LeftPairs left = left_factor<of_left>(kernels, outs, rows, {dz, size.out, true});
    const int64_t pairs = pairs_of(rows);
    for (int64_t j = 0; j < width; j += bf16_panel) {
      const FloatTarget to{sum + j, width};
      kernels.multiply(outs, std::min(bf16_panel, width - j), pairs, left,
                       {panels + j * 2 * pairs, 2 * bf16_panel}, 1,
                       first ? FloatRows{nullptr, 0} : FloatRows(to), to);
    }
  }

  // The gradients that outputs [from, from + outs) of rows [begin, begin + rows) bring, tile by tile. The
  // sums are written; either may be null.
  void share(int64_t begin, int64_t rows, int64_t from, int64_t outs, float* dweight_sum,
             float* dbias_sum) const {
    if (dbias_sum) std::fill_n(dbias_sum, outs, 0.0f);
    const int64_t step = rows_of_tile(rows), end = begin + rows;
    for (int64_t row = begin; row < end; row += step) {
      const int64_t some = std::min(step, end - row);
      const bf16* dz = dz_of.make(row, some, from, outs);
      if (dbias_sum) add_rows(some, outs, dz, size.out, dbias_sum);
      if (dx && !dx_follows) input_gradient(row, some, dz);
      if (dweight_sum) weight_gradient(row, some, dz, outs, row == begin, dweight_sum);
    }
  }

  // Packs rows [begin, end) of x for slab(); begin is even.
  void pack_rows(int64_t begin, int64_t end) const {
    for (int64_t j = 0; j < size.in; j += bf16_panel)
      kernels.interleave(end - begin, std::min(bf16_panel, size.in - j), x + begin * size.in + j, size.in,
                         x_panels + j * 2 * pairs_of(size.rows) + begin * bf16_panel, 2 * bf16_panel);
  }

  // Rows [begin, end) of dweight over all rows of x, after every dz has been made. The sums stay in registers
  // over all rows.
  void slab(int64_t begin, int64_t end, const Target<bf16>& dweight) const {
    const LeftPairs left =
        left_factor<of_left>(kernels, end - begin, size.rows, {dz_of.at(0, begin), size.out, true});
    multiply_bf16_panels(kernels, end - begin, size.in, size.rows, left, x_panels, nullptr, dweight.add,
                         dweight.data + begin * size.in, size.in);
  }
};

// to [rows, columns] = the sum over the groups in their order, made in the first one's rows. sums [groups,
// rows, width]
void total(const Bf16Kernels& kernels, int64_t groups, int64_t rows, int64_t columns, int64_t width,
           float* sums, const Target<bf16>& to) {
  constexpr float one = 1;
  parallel_rows(rows, columns, [&](int64_t r) {
    float* sum = sums + r * width;
    add_parts(0, columns, groups, rows * width, sum);
    kernels.store(1, columns, {sum, width}, &one, 0, to.add, to.data + r * columns, columns);
  });
}

}  // namespace

void linear_forward_bf16(const Bf16Kernels& kernels, const LinearSize& size, const bf16* x,
                         const bf16* weight, const bf16* bias, Activation f, bf16* y, bf16* slope,
                         const Finish& finish) {
  const auto [rows, in, out] = size;
  const MadeOfWeight<bf16> panels(weight, {"linear", {out, in}}, bf16_packed_elements(in, out),
                                  [&, in = in, out = out](bf16* to) {
                                    if (!DryRun::active()) pack_all(kernels, in, out, {weight, in, true}, to);
                                  });
  const Workspace<float> first(bias ? whole_bf16_panels(out) : 0);
  if (DryRun::active()) return;
  if (bias) std::fill(std::copy_n(bias, out, first.data()), first.data() + whole_bf16_panels(out), 0.0f);
  const float* start = bias ? first.data() : nullptr;
  Blocks blocks(rows, out, rows_a_tile(finish ? rows_a_group(rows, least_rows()) : rows), 1, bf16_panel);
  if (finish) blocks.wide = out;  // finish() wants whole rows
  blocks.each([=, &kernels, &panels, &finish, in = in, out = out](int64_t row, int64_t some_rows,
                                                                  int64_t begin, int64_t outs) {
    const LeftPairs left = left_factor<of_left>(kernels, some_rows, in, {x + row * in, in});
    const bf16* right = panels.data() + begin * 2 * pairs_of(in);
    const float* before = start ? start + begin : nullptr;
    bf16 *ys = y + row * out + begin, *slopes = slope ? slope + row * out + begin : nullptr;
    if (f == Activation::none && !slope) {
      multiply_bf16_panels(kernels, some_rows, outs, in, left, right, before, false, ys, out);
    } else {
      const auto activate = [=, &kernels](int64_t i, int64_t some, int64_t j, int64_t columns,
                                          const float* z) {
        const int64_t at = i * out + j;
        activate_block(kernels, f, some, columns, z, ys + at, slopes ? slopes + at : nullptr, out);
      };
      multiply_bf16_panels(kernels, some_rows, outs, in, left, right, before, {ys, slopes}, out, activate);
    }
    if (finish) finish(row * out, (row + some_rows) * out);
  });
}

void linear_backward_bf16(const Bf16Kernels& kernels, const LinearSize& size, const bf16* dy, bf16* slope,
                          const bf16* x, const bf16* weight, const LayerGradients<bf16>& gradients) {
  const Target<bf16> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  const auto [rows, in, out] = size;
  const BackwardShares by(rows, in, out, chunk_length(420), rows_at_once(kernels));
  const int64_t width = whole_bf16_vectors(in);
  const Workspace<bf16> panels(dx ? bf16_packed_elements(out, in) : 0),
      x_panels(dweight && by.few ? bf16_packed_elements(rows, in) : 0);
  const Workspace<float> dweight_sums(dweight && !by.few ? by.groups * out * width : 0),
      dbias_sums(dbias ? by.groups * out : 0);
  if (DryRun::active()) return;
  if (dx) pack_all(kernels, out, in, {weight, in}, panels.data());
  const bool dx_follows = !by.few && !by.whole();
  const BackwardPass pass{kernels,         size,  {dy, slope, out}, x, dx, panels.data(),
                          x_panels.data(), width, dx_follows};
  by.each(rows, out, [&, out = out](int64_t group, int64_t row, int64_t some, int64_t from, int64_t outs) {
    const int64_t first = group * out + from;
    pass.share(row, some, from, outs, dweight && !by.few ? dweight_sums.data() + first * width : nullptr,
               dbias ? dbias_sums.data() + first : nullptr);
  });
  if (dx && dx_follows)
    parallel_for(rows, rows_a_tile(rows, most_rows(), 2), [&](int64_t begin, int64_t end) {
      pass.input_gradient(begin, end - begin, pass.dz_of.at(begin));
    });
  if (dweight && by.few) {
    parallel_for(rows, 2 * chunk_length(32, 2),
                 [&](int64_t begin, int64_t end) { pass.pack_rows(begin, end); });
    parallel_for(out, BackwardShares::rows_a_slab(out, 1),
                 [&](int64_t begin, int64_t end) { pass.slab(begin, end, dweight); });
  } else if (dweight) {
    total(kernels, by.groups, out, in, width, dweight_sums.data(), dweight);
  }
  if (dbias) total(kernels, by.groups, 1, out, out, dbias_sums.data(), dbias);
}

}  // namespace tessera
