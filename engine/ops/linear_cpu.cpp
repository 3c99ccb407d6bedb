#include <algorithm>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/panel_gemm.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/linear_bf16.h"
#include "engine/ops/linear_dz.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/linear_tiles.h"

// The rows are cut into tiles that stay in the second cache from the product to the activation and, in the
// backward pass, from dz to both products that read it. The tiles of a group share one sum for dweight.
// Where the rows are few, both products wait for every dz, so that their blocks may be parts of the columns.

namespace tessera {

namespace {

using namespace linear_tiles;
static_assert(block == rows_a_band, "a block of dweight is whole bands of dz");

// Packs all panels of B [depth, n].
template <class T> void pack_panels(int64_t depth, int64_t n, Strided<T> b, Wide<T>* panels) {
  constexpr int64_t width = panel_width<Wide<T>>;
  parallel_for(n, width, [=](int64_t column, int64_t end) {
    for (; column < end; column += width) pack_panel<T>(depth, n, b, column, panels + column * depth);
  });
}

// y = f(z) and, unless null, slope = f'(z) for a block [rows, columns]; y may be z. The rows of y and slope
// are `stride` elements apart.
template <class T>
void activate_block(Activation f, int64_t rows, int64_t columns, Rows<const Wide<T>> z, T* y, T* slope,
                    int64_t stride) {
  with_activation(f, [=]<class F>(F) {
    for (int64_t i = 0; i < rows; ++i) {
      const Wide<T>* from = z.data + i * z.row;
      T *to = y + i * stride, *slopes = slope ? slope + i * stride : nullptr;
      if (!slopes) {
        write_each(0, columns, to, false, [=](int64_t j) { return F::value(from[j]); });
        continue;
      }
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        const Wide<T> at = from[j];
        store(to[j], F::value(at));
        store(slopes[j], F::slope(at));
      }
    }
  });
}

constexpr int of_in = 0, of_out = 1, of_panels = 2, of_bands = 3;  // keys of a thread's scratch memory

// What the backward pass reads and writes; see linear_kernels.h.
template <class T> struct BackwardPass {
  using W = Wide<T>;

  LinearSize size;
  bool dx_follows;  // dx is made by blocks, after every dz
  LinearDz<T> dz_of;
  const T* x;
  Target<T> dx;
  const W* weight;         // packed in panels
  W *x_panels, *dz_bands;  // all of x and of dz, packed for the blocks of few rows; x_panels may be null

  // `outs` columns of some rows of dz in W: where they lie, or a copy.
  Rows<const W> widened(const T* dz, int64_t rows, int64_t outs) const {
    if constexpr (std::is_same_v<T, W>) return {dz, size.out};
    W* const copy = thread_scratch<W, of_in>(rows * outs);
    for (int64_t i = 0; i < rows; ++i) std::copy_n(dz + i * size.out, outs, copy + i * outs);
    return {copy, outs};
  }

  // sum [outs] += the rows of dz, four at a time, so that the sum is loaded and stored once for them.
  void add_bias_gradient(int64_t rows, int64_t outs, Rows<const W> dz, W* sum) const {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4)
      write_each(0, outs, sum, false, [sum, out = dz.row, row = dz.data + i * dz.row](int64_t j) {
        return sum[j] + row[j] + row[out + j] + row[2 * out + j] + row[3 * out + j];
      });
    for (; i < rows; ++i)
      write_each(0, outs, sum, true, [row = dz.data + i * dz.row](int64_t j) { return row[j]; });
  }

  // The columns [column, column + columns) of dx for some rows. dz [rows, out]
  void input_gradient(int64_t row, int64_t rows, int64_t column, int64_t columns, Rows<const W> dz) const {
    T* to = dx.data + row * size.in + column;
    const auto multiply = [&](Rows<W> target, bool add) {
      panel_gemm<W>(rows, columns, size.out, {dz.data, dz.row, 1}, weight + column * size.out,
                    {add ? target.data : nullptr, target.row}, target);
    };
    if constexpr (std::is_same_v<T, W>) {
      multiply({to, size.in}, dx.add);
    } else {
      W* product = thread_scratch<W, of_out>(rows * columns);
      multiply({product, columns}, false);
      for (int64_t i = 0; i < rows; ++i)
        write_each(0, columns, to + i * size.in, dx.add, [=](int64_t j) { return product[i * columns + j]; });
    }
  }

  // A block of dx, after every dz has been made.
  void input_block(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    input_gradient(row, rows, column, columns, widened(dz_of.at(row), rows, size.out));
  }

  // sum [outs, in] += dz^T x for some rows of x and dz [rows, outs]; `first` writes the sum instead.
  void weight_gradient(int64_t row, int64_t rows, int64_t outs, Rows<const W> dz, bool first, W* sum) const {
    const int64_t in = size.in;
    W* const panels = thread_scratch<W, of_panels>(packed_elements<W>(rows, in));
    pack_rows<T>(rows, in, x + row * in, rows, panels);
    W* const bands = thread_scratch<W, of_bands>(rows * outs);
    pack_bands<W>(outs, rows, dz.data, dz.row, rows, 0, bands);
    band_gemm<W>(outs, in, rows, bands, panels, {first ? nullptr : sum, in}, {sum, in});
  }

  // Packs some rows of x and of dz for the blocks.
  void pack_for_blocks(int64_t row, int64_t rows, Rows<const W> dz) const {
    pack_rows<T>(rows, size.in, x + row * size.in, size.rows, x_panels + row * panel_width<W>);
    pack_bands<W>(size.out, rows, dz.data, dz.row, size.rows, row, dz_bands);
  }

  // The gradients that outputs [from, from + outs) of rows [begin, begin + rows) bring, tile by tile. The
  // sums are written; either may be null.
  void share(int64_t begin, int64_t rows, int64_t from, int64_t outs, W* dweight_sum, W* dbias_sum) const {
    if (dbias_sum) std::fill_n(dbias_sum, outs, W(0));
    const int64_t step = rows_a_tile(rows), end = begin + rows;
    for (int64_t row = begin; row < end; row += step) {
      const int64_t some = std::min(step, end - row);
      const Rows<const W> dz = widened(dz_of.make(row, some, from, outs), some, outs);
      if (dbias_sum) add_bias_gradient(some, outs, dz, dbias_sum);
      if (dx && !dx_follows) input_gradient(row, some, 0, size.in, dz);
      if (x_panels) pack_for_blocks(row, some, dz);
      if (dweight_sum) weight_gradient(row, some, outs, dz, row == begin, dweight_sum);
    }
  }

  // A block of dweight [out, in] where the rows are few.
  void weight_block(int64_t begin, int64_t outs, int64_t column, int64_t columns, W* dweight_sum) const {
    band_gemm<W>(outs, columns, size.rows, dz_bands + begin * size.rows, x_panels + column * size.rows,
                 {nullptr, 0}, {dweight_sum + begin * size.in + column, size.in});
  }
};

// to = the sum over the groups in their order, made in the first one's place. sums [groups, n]
template <class T> void total(int64_t groups, int64_t n, Wide<T>* sums, const Target<T>& to) {
  parallel_for(n, chunk_length(chunk_elements), [=](int64_t begin, int64_t end) {
    add_parts(begin, end, groups, n, sums);
    write_each(begin, end, to.data, to.add, [=](int64_t i) { return sums[i]; });
  });
}

}  // namespace

// f'(z), the slope, is kept rather than z: it and f(z) share one exponential.
template <class T>
void linear_forward(const LinearSize& size, const T* x, const T* weight, const T* bias, Activation f, T* y,
                    T* slope, const Finish& finish) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return linear_forward_bf16(*kernels, size, x, weight, bias, f, y, slope, finish);
  using W = Wide<T>;
  const auto [rows, in, out] = size;
  const MadeOfWeight<W> panels(weight, {"linear", {out, in}}, packed_elements<W>(in, out),
                               [=, in = in, out = out](W* to) {
                                 if (!DryRun::active()) pack_panels<T>(in, out, {weight, 1, in}, to);
                               });
  const Workspace<W> first(bias ? out : 0);
  if (DryRun::active()) return;
  if (bias) std::copy_n(bias, out, first.data());
  const W* start = bias ? first.data() : nullptr;
  constexpr bool own = std::is_same_v<T, W>;
  const bool activates = !own || f != Activation::none;
  // The z of so many columns waits in the second cache for the activation.
  const int64_t columns = activates ? chunk_length(8, panel_width<W>) * panel_width<W> : out;
  Blocks blocks(rows, out, rows_a_tile(finish ? rows_a_group(rows, least_rows()) : rows), 1, panel_width<W>);
  if (finish) blocks.wide = out;  // finish() wants whole rows
  blocks.each(
      [=, in = in, out = out, &panels, &finish](int64_t row, int64_t some_rows, int64_t begin, int64_t outs) {
        const W* x_tile = wide_copy<of_in>(x + row * in, some_rows * in);
        for (int64_t j = begin; j < begin + outs; j += columns) {
          const int64_t some = std::min(columns, begin + outs - j), at = row * out + j;
          Rows<W> z;
          if constexpr (own)
            z = {y + at, out};
          else
            z = {thread_scratch<W, of_out>(some_rows * some), some};
          panel_gemm<W>(some_rows, some, in, {x_tile, in, 1}, panels.data() + j * in,
                        {start ? start + j : nullptr, 0}, z);
          if (activates) activate_block<T>(f, some_rows, some, z, y + at, slope ? slope + at : nullptr, out);
        }
        if (finish) finish(row * out, (row + some_rows) * out);
      });
}

template <>
template <class T>
void LinearKernels<Cpu>::forward(const LinearSize& size, const T* x, const T* weight, const T* bias,
                                 Activation f, T* y, T* slope) {
  linear_forward<T>(size, x, weight, bias, f, y, slope, nullptr);
}

template <>
template <class T>
void LinearKernels<Cpu>::backward(const LinearSize& size, Activation, const T* dy, T* slope, const T* x,
                                  const T* weight, const LayerGradients<T>& gradients) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return linear_backward_bf16(*kernels, size, dy, slope, x, weight, gradients);
  using W = Wide<T>;
  const Target<T> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  const auto [rows, in, out] = size;
  const BackwardShares by(rows, in, out, chunk_length(240));
  const Workspace<W> panels(dx ? packed_elements<W>(out, in) : 0);
  const bool packs = dweight && by.few;
  const Workspace<W> dweight_sums(dweight ? by.sums() * out * in : 0),
      dbias_sums(dbias ? by.groups * out : 0), x_panels(packs ? packed_elements<W>(rows, in) : 0),
      dz_bands(packs ? rows * out : 0);
  if (DryRun::active()) return;
  if (dx) pack_panels<T>(out, in, {weight, in, 1}, panels.data());
  W* const x_of_blocks = packs ? x_panels.data() : nullptr;
  const BackwardPass<T> pass{size, !by.whole(),   {dy, slope, out}, x,
                             dx,   panels.data(), x_of_blocks,      dz_bands.data()};
  by.each(rows, out,
          [&, in = in, out = out](int64_t group, int64_t row, int64_t some, int64_t from, int64_t outs) {
            const int64_t first = group * out + from;
            pass.share(row, some, from, outs, dweight && !by.few ? dweight_sums.data() + first * in : nullptr,
                       dbias ? dbias_sums.data() + first : nullptr);
          });
  if (dx && pass.dx_follows)
    Blocks(rows, in, rows_a_tile(rows), 1, panel_width<W>).each([&](auto... block) {
      pass.input_block(block...);
    });
  if (packs)
    Blocks(out, in, rows_a_tile(out, chunk_length(192, block)), block, panel_width<W>)
        .each([&](auto... block) { pass.weight_block(block..., dweight_sums.data()); });
  if (dweight) total(by.sums(), out * in, dweight_sums.data(), dweight);
  if (dbias) total(by.groups, out, dbias_sums.data(), dbias);
}

TESSERA_FOR_FLOATS(linear_forward)
TESSERA_FOR_FLOATS(LinearKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(LinearKernels<Cpu>::backward)

}  // namespace tessera
