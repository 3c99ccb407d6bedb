#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/batch_norm_few.h"
#include "engine/ops/batch_norm_kernels.h"
#include "engine/ops/batch_norm_rows.h"

namespace tessera {

namespace {

// Calls some(Together<n>, offset, columns) for the n folded rows that begin at the offset, until it has been
// called for all rows [begin, end). Several rows together read what belongs to a column once.
template <int n> using Together = std::integral_constant<int, n>;
template <class Some> void for_some_rows(const FoldedRows& folded, int64_t begin, int64_t end, Some some) {
  constexpr int most = 8;
  int64_t i = begin;
  for (; i + most <= end && folded.columns(i + most - 1) == folded.width; i += most)
    some(Together<most>{}, i * folded.width, folded.width);
  for (; i < end; ++i) some(Together<1>{}, i * folded.width, folded.columns(i));
}

// Calls f(r) for r in [0, n), in loops that are to become vectors.
template <class F, int n> TESSERA_IN_LOOPS void each_of(Together<n>, F f) {
  if constexpr (n == 1) {
    f(0);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) f(r);
  }
}

// `count` sums over the rows for each column, [count, width]: add(rows, offset, columns, sums) adds the
// folded rows that begin at the offset to sums, [count, folded width].
template <class W, class Add> std::vector<W> sums_of_columns(RowsSize size, int64_t count, Add add) {
  const FoldedRows folded(size);
  std::vector<W> sums =
      column_sums<W>(folded.rows, folded.width, count, [=](int64_t begin, int64_t end, W* sum) {
        for_some_rows(folded, begin, end,
                      [=](auto rows, int64_t at, int64_t columns) { add(rows, at, columns, sum); });
      });
  for (int64_t k = 0; k < count; ++k) {
    W* const own = sums.data() + k * folded.width;
    add_parts(0, size.width, folded.fold, size.width, own);
    std::copy_n(own, size.width, sums.data() + k * size.width);
  }
  return sums;
}

// Calls row(offset, columns) for every folded row, on all threads.
template <class Row> void for_folded_rows(RowsSize size, Row row) {
  const FoldedRows folded(size);
  parallel_rows(folded.rows, folded.width, [=](int64_t i) { row(i * folded.width, folded.columns(i)); });
}

// Stores a value that a T holds exactly, without the instructions that would round it.
template <class T> TESSERA_IN_LOOPS void store_exact(T& out, Wide<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    out.bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  else
    out = value;
}

// dz, the gradient of what f is applied to, at each number of x; see before_activation(). It is rounded where
// it is a gradient of its own, that of what was `added`, or is to be `kept`.
template <class F, bool added, bool kept, class T> struct BeforeActivation {
  using W = Wide<T>;
  const T *dy, *x, *residual;
  const W *scale, *shift;

  TESSERA_IN_LOOPS W operator()(int64_t at, int64_t column) const {
    const W z = before_activation<F, added>(scale[column], shift[column], x[at], residual, at);
    const W dz = W(dy[at]) * F::slope(z);
    return (added || kept) && !slope_is_0_or_1<F> ? stored<T>(dz) : dz;
  }
};

}  // namespace

// In one pass: differences are taken from the mean of the first rows, a 64th of all. The variance is at least
// a 64th of the square of that mean's distance from all rows' mean, so no more than six bits cancel.
template <>
template <class T>
void BatchNormKernels<Cpu>::statistics(RowsSize size, const T* x, double momentum, Wide<T>* mean,
                                       Wide<T>* variance, Wide<T>* running_mean, Wide<T>* running_var) {
  using W = Wide<T>;
  const W n = W(size.rows);
  const RowsSize first{(size.rows + 63) / 64, size.width};
  const auto first_sums = sums_of_columns<W>(first, 1, [=](auto rows, int64_t at, int64_t columns, W* sum) {
    const T* const from = x + at;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      W total = 0;
      each_of(rows, [&](int r) { total += W(from[r * columns + j]); });
      sum[j] += total;
    }
  });
  const auto near =
      of_columns<W>(size, [&](int64_t j) { return first_sums[static_cast<size_t>(j)] / W(first.rows); });
  const W* const centre = near.data();
  const int64_t stride = static_cast<int64_t>(near.size());
  const auto sums = sums_of_columns<W>(size, 2, [=](auto rows, int64_t at, int64_t columns, W* sum) {
    const T* const from = x + at;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      const W middle = centre[j];
      W total = 0, squares = 0;
      each_of(rows, [&](int r) {
        const W off = W(from[r * columns + j]) - middle;
        total += off;
        squares += off * off;
      });
      sum[j] += total;
      sum[stride + j] += squares;
    }
  });
  const W *off = sums.data(), *squares = off + size.width;
  const W keep = W(1 - momentum), take = W(momentum), unbiased = n / (n - 1);
  for (int64_t j = 0; j < size.width; ++j) {
    const W moved = off[j] / n;
    mean[j] = centre[j] + moved;
    variance[j] = std::max(squares[j] / n - moved * moved, W(0));
    running_mean[j] = keep * running_mean[j] + take * mean[j];
    running_var[j] = keep * running_var[j] + take * variance[j] * unbiased;
  }
}

template <>
template <class T>
void BatchNormKernels<Cpu>::forward(RowsSize size, const NormedColumns<T>& z, Activation f, T* y) {
  const Affine<Wide<T>> affine(size, z.weight, z.bias, z.by);
  const Wide<T>*a = affine.scale.data(), *b = affine.shift.data();
  const T *const x = z.x, *const residual = z.residual;
  const auto added = [=](int64_t at) { return residual ? residual + at : nullptr; };
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Norm norm(f); norm)
      return for_folded_rows(size, [=](int64_t at, int64_t columns) {
        norm(columns, columns, a, b, x + at, added(at), y + at);
      });
  with_activation(f, [=]<class F>(F) {
    for_folded_rows(size, [=](int64_t at, int64_t columns) {
      norm_columns<F, T>(columns, a, b, x + at, added(at), y + at);
    });
  });
}

namespace {

// The gradients of a batch norm, by the numbers of each folded column.
template <class T> struct NormBackward {
  using W = Wide<T>;
  RowsSize size;
  const T* x;
  W share;  // of each row in the mean's gradient
  Affine<W> affine;
  std::vector<W> mean, rstd;

  NormBackward(RowsSize its_size, const NormedColumns<T>& z)
      : size(its_size),
        x(z.x),
        share(z.by.of_batch ? W(1) / W(size.rows) : W(0)),
        affine(size, z.weight, z.bias, z.by),
        mean(of_columns<W>(size, [&](int64_t j) { return z.by.mean[j]; })),
        rstd(of_columns<W>(size, [&](int64_t j) { return 1 / std::sqrt(z.by.variance[j] + W(z.by.eps)); })) {}

  template <class F, bool added, bool kept = false>
  BeforeActivation<F, added, kept, T> before(const T* dy, const T* residual = nullptr) const {
    return {dy, x, residual, affine.scale.data(), affine.shift.data()};
  }

  // The sums over the rows of dz h and of dz, [2, width]: dweight and dbias. Where it `keeps`, dz is written
  // to `kept`.
  template <bool keeps, class Dz> std::vector<W> sums(const Dz& dz, T* kept) const {
    const int64_t stride = static_cast<int64_t>(mean.size());
    const W *centre = mean.data(), *scale = rstd.data();
    return sums_of_columns<W>(size, 2, [=, kept = kept](auto rows, int64_t at, int64_t columns, W* sum) {
      const Dz from = dz;  // a copy, whose pointers the loop need not load
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        const W middle = centre[j];
        W along = 0, level = 0;
        each_of(rows, [&](int r) {
          const int64_t place = at + r * columns + j;
          const W d = from(place, j);
          if constexpr (keeps) store_exact(kept[place], d);
          along += d * (W(from.x[place]) - middle);
          level += d;
        });
        sum[j] += along * scale[j];
        sum[stride + j] += level;
      }
    });
  }

  // dx = rstd weight (dz - mean(dz) - h mean(dz h)), the means only where the statistics are the batch's.
  template <class Dz> void write_dx(const Dz& dz, const std::vector<W>& sums, const Target<T>& dx) const {
    const auto means = [&](int64_t first) {
      return of_columns<W>(size, [&](int64_t j) { return share * sums[static_cast<size_t>(first + j)]; });
    };
    const std::vector<W> dz_h_mean = means(0), dz_mean = means(size.width);
    const W *along = dz_h_mean.data(), *level = dz_mean.data(), *centre = mean.data(), *inverse = rstd.data();
    for_folded_rows(size, [=](int64_t at, int64_t columns) {
      write_each(0, columns, dx.data + at, dx.add, [=](int64_t j) {
        const W h = (W(dz.x[at + j]) - centre[j]) * inverse[j];
        return dz.scale[j] * (dz(at + j, j) - level[j] - h * along[j]);
      });
    });
  }
};

// to = the sums of the columns, or to += them; null: nothing.
template <class T> void write_sums(int64_t width, const Wide<T>* sums, const Target<T>& to) {
  if (to) write_each(0, width, to.data, to.add, [=](int64_t j) { return sums[j]; });
}

}  // namespace

template <>
template <class T>
void BatchNormKernels<Cpu>::backward(RowsSize size, const T* dy, const NormedColumns<T>& z, Activation f,
                                     const LayerGradients<T>& gradients, const Target<T>& dresidual) {
  const NormBackward<T> norm(size, z);
  const auto finish = [&](const auto& dz, const auto& sums) {
    write_sums<T>(size.width, sums.data(), gradients.dweight);
    write_sums<T>(size.width, sums.data() + size.width, gradients.dbias);
    if (gradients.dx) norm.write_dx(dz, sums, gradients.dx);
  };
  with_activation(f, [&]<class F>(F) {
    if constexpr (std::is_same_v<T, float>)
      if (z.by.of_batch && size.rows <= few_rows) {
        if (z.residual)
          return few_rows_backward(size, z, norm.template before<F, true>(dy, z.residual), gradients,
                                   dresidual);
        return few_rows_backward(size, z, norm.template before<F, false>(dy), gradients, {});
      }
    if (!z.residual) {
      if constexpr (!slope_is_0_or_1<F>)
        if (gradients.dx && !gradients.dx.add) {  // dz waits there, which takes less than making it again
          const auto sums =
              norm.template sums<true>(norm.template before<F, false, true>(dy), gradients.dx.data);
          return finish(norm.template before<Identity, false>(gradients.dx.data), sums);
        }
      const auto dz = norm.template before<F, false>(dy);
      return finish(dz, norm.template sums<false>(dz, nullptr));
    }
    const auto dz = norm.template before<F, true>(dy, z.residual);
    if (dresidual && !dresidual.add) {  // what is written there is read again instead of made again
      const auto sums = norm.template sums<true>(dz, dresidual.data);
      return finish(norm.template before<Identity, false>(dresidual.data), sums);
    }
    if (dresidual)
      for_folded_rows(size, [=](int64_t at, int64_t columns) {
        write_each(0, columns, dresidual.data + at, true, [=](int64_t j) { return dz(at + j, j); });
      });
    finish(dz, norm.template sums<false>(dz, nullptr));
  });
}

TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::statistics)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::backward)

}  // namespace tessera
