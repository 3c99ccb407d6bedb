#pragma once

// The sums of depthwise convolutions over maps whose channels are last and have one filter each. A few
// windows and vectors of channels at a time stay in registers over all taps.

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/core/scratch.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// A tap and the entry that it reads at a place along one axis.
struct Meeting {
  int64_t tap, entry;
};

// One axis of a convolution or, `turned`, of the gradient of its input: the places are the windows' and the
// entries the map's, or the other way round.
struct TapAxis {
  int64_t places, entries, taps, stride, padding;
  bool turned;

  // Places `apart` from each other meet the same taps, with entries `shift` apart, but for the edges.
  int64_t apart() const { return turned ? stride : 1; }
  int64_t shift() const { return turned ? 1 : stride; }

  // The taps at a place that read an entry inside.
  std::vector<Meeting> at(int64_t place) const {
    std::vector<Meeting> met;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t from = turned ? place + padding - tap : place * stride + tap - padding;
      const int64_t entry = turned ? from / stride : from;
      if (from >= 0 && entry < entries && (!turned || from % stride == 0)) met.push_back({tap, entry});
    }
    return met;
  }
};

// The taps at every place.
inline std::vector<std::vector<Meeting>> meetings(const TapAxis& axis) {
  std::vector<std::vector<Meeting>> all;
  for (int64_t place = 0; place < axis.places; ++place) all.push_back(axis.at(place));
  return all;
}

// Places of an axis that meet the same taps: `first`, first + apart, ... What the first one meets is `met`.
struct Places {
  static constexpr int64_t most = 4;
  int64_t first, count;
  std::vector<Meeting> met;
};

inline std::vector<Places> grouped(const TapAxis& axis) {
  // A map of which most entries meet a single tap or two comes fastest as it lies in memory.
  const int64_t most = axis.taps >= 2 * axis.shift() ? Places::most : 1;
  const auto same_taps = [](const std::vector<Meeting>& a, const std::vector<Meeting>& b) {
    return std::ranges::equal(a, b, {}, &Meeting::tap, &Meeting::tap);
  };
  std::vector<Places> groups;
  for (int64_t phase = 0; phase < std::min(axis.apart(), axis.places); ++phase)
    for (int64_t place = phase; place < axis.places;) {
      Places group{place, 1, axis.at(place)};
      while (group.count < most && (place += axis.apart()) < axis.places &&
             same_taps(axis.at(place), group.met))
        ++group.count;
      place = group.first + group.count * axis.apart();
      groups.push_back(std::move(group));
    }
  return groups;
}

// A tap's filters and the entry that the first of some places reads, both [channels].
template <class T> struct Tap {
  const Wide<T>* filters;
  const T* entry;
};

// The sums over the taps at some places, whose entries lie `shift` elements apart.
template <class T> struct TapSums {
  using W = Wide<T>;

  const std::vector<Tap<T>>& taps;
  int64_t shift, channels;
  const W* start;  // [channels]
  W* sums;         // [places, channels]

  // The sums of n vectors of channels from `channel` on.
  template <int places, int n> void of_vectors(int64_t channel) const {
    Vector<W> sum[places * n];
    for (int i = 0; i < places * n; ++i) sum[i] = load_vector(start + channel + i % n * lanes<W>);
    for (const Tap<T>& tap : taps) {
      Vector<W> filters[n];
      for (int v = 0; v < n; ++v) filters[v] = load_vector(tap.filters + channel + v * lanes<W>);
#pragma GCC unroll 32
      for (int i = 0; i < places * n; ++i)
        sum[i] += filters[i % n] * load_wide(tap.entry + i / n * shift + channel + i % n * lanes<W>);
    }
    for (int i = 0; i < places * n; ++i)
      store_vector(sums + i / n * channels + channel + i % n * lanes<W>, sum[i]);
  }

  template <int places> void of_places() const {
    constexpr int n = places == 1 ? 4 : 2;
    int64_t c = 0;
    for (; c + n * lanes<W> <= channels; c += n * lanes<W>) of_vectors<places, n>(c);
    for (; c + lanes<W> <= channels; c += lanes<W>) of_vectors<places, 1>(c);
    for (; c < channels; ++c)
      for (int i = 0; i < places; ++i) {
        W& sum = sums[i * channels + c] = start[c];
        for (const Tap<T>& tap : taps) sum += tap.filters[c] * W(tap.entry[i * shift + c]);
      }
  }

  void of(int64_t places) const {
    static_assert(Places::most == 4);
    if (places == 1) return of_places<1>();
    if (places == 2) return of_places<2>();
    if (places == 3) return of_places<3>();
    of_places<4>();
  }
};

// Asks for the first `n` elements of some rows, which lie `apart` from each other.
template <class T> void ask_for(const T* from, int64_t rows, int64_t apart, int64_t n) {
  constexpr int64_t line = 64 / sizeof(T);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < n; k += line) __builtin_prefetch(from + i * apart + k);
}

// The sums of images of [rows.entries, columns.entries, channels].
template <class T> struct TapPlan {
  TapAxis rows, columns;
  int64_t channels;
  std::vector<Places> groups = grouped(columns);
  std::vector<std::vector<Meeting>> met = meetings(rows);

  // Makes those of an image, row after row of places: write(row, column, sums [channels]) is called for every
  // place, done(row) for every row. filters [rows.taps, columns.taps, channels]; every sum begins at start
  // [channels].
  template <class Write, class Done>
  void each_sum(const T* image, const Wide<T>* filters, const Wide<T>* start, const Write& write,
                const Done& done) const {
    constexpr int of_sums = 31;  // key of a thread's scratch memory
    Wide<T>* const sums = thread_scratch<Wide<T>, of_sums>(Places::most * channels);
    std::vector<Tap<T>> taps;
    taps.reserve(static_cast<size_t>(rows.taps * columns.taps));
    const auto pixel = [&](int64_t row, int64_t column) {
      return image + (row * columns.entries + column) * channels;
    };
    for (int64_t i = 0; i < rows.places; ++i) {
      const std::vector<Meeting>& of_row = met[static_cast<size_t>(i)];
      for (const Places& group : groups) {
        taps.clear();
        for (const Meeting& row : of_row)
          for (const Meeting& column : group.met)
            taps.push_back(
                {filters + (row.tap * columns.taps + column.tap) * channels, pixel(row.entry, column.entry)});
        // The entries that the row below reads and this one does not.
        if (!taps.empty() && of_row.back().entry + 1 < rows.entries)
          ask_for(pixel(of_row.back().entry + 1, group.met.front().entry), rows.shift(), pixel(1, 0) - image,
                  group.count * columns.shift() * channels);
        TapSums<T>{taps, columns.shift() * channels, channels, start, sums}.of(group.count);
        for (int64_t g = 0; g < group.count; ++g)
          write(i, group.first + g * columns.apart(), sums + g * channels);
      }
      done(i);
    }
  }
};

// The gradient of the filters, summed over the windows of an image. dy [windows, channels], image [height,
// width, channels], dfilters [kernel_h, kernel_w, channels]
template <class T> struct FilterGradient {
  using W = Wide<T>;
  struct Range {
    int64_t begin, end;
  };

  TapAxis rows, columns;
  int64_t channels;
  const T *dy, *image;
  W* dfilters;

  // The windows along an axis whose tap reads inside the map.
  static Range inside(const TapAxis& axis, int64_t tap) {
    const int64_t before = axis.padding - tap, after = axis.entries + before;
    const auto first_from = [&](int64_t pixel) {  // the first window that begins at this pixel or later
      return std::clamp<int64_t>(pixel <= 0 ? 0 : (pixel + axis.stride - 1) / axis.stride, 0, axis.places);
    };
    return {first_from(before), first_from(after)};
  }

  // Adds the products over windows i and j to `taps` neighbouring taps of a row of the kernel, for n vectors
  // of channels. All of them read inside the map.
  template <int taps, int n> void add(Range i, Range j, int64_t u, int64_t v, int64_t channel) const {
    if (i.begin >= i.end || j.begin >= j.end) return;
    W* const to = dfilters + (u * columns.taps + v) * channels + channel;
    Vector<W> sum[taps * n];
    for (int t = 0; t < taps * n; ++t) sum[t] = load_vector(to + t / n * channels + t % n * lanes<W>);
    for (int64_t row = i.begin; row < i.end; ++row) {
      const T* d = dy + (row * columns.places + j.begin) * channels + channel;
      const int64_t y = row * rows.stride + u - rows.padding,
                    x = j.begin * columns.stride + v - columns.padding;
      const T* pixel = image + (y * columns.entries + x) * channels + channel;
      for (int64_t k = j.begin; k < j.end; ++k, d += channels, pixel += columns.stride * channels) {
        Vector<W> of_y[n];
        for (int w = 0; w < n; ++w) of_y[w] = load_wide(d + w * lanes<W>);
#pragma GCC unroll 32
        for (int t = 0; t < taps * n; ++t)
          sum[t] += of_y[t % n] * load_wide(pixel + t / n * channels + t % n * lanes<W>);
      }
    }
    for (int t = 0; t < taps * n; ++t) store_vector(to + t / n * channels + t % n * lanes<W>, sum[t]);
  }

  // `taps` taps from (u, v) on: together where all read inside the map, one by one at the edges.
  template <int taps, int n> void of_taps(int64_t u, int64_t v, int64_t channel) const {
    const Range i = inside(rows, u);
    const int64_t begin = inside(columns, v).begin, end = std::max(begin, inside(columns, v + taps - 1).end);
    if constexpr (taps > 1)
      for (int64_t t = v; t < v + taps; ++t) {
        const Range all = inside(columns, t);
        add<1, n>(i, {all.begin, std::min(begin, all.end)}, u, t, channel);
        add<1, n>(i, {std::max(end, all.begin), all.end}, u, t, channel);
      }
    add<taps, n>(i, {begin, end}, u, v, channel);
  }

  // All taps, as many of a row of the kernel at a time as the registers hold.
  template <int n> void of_vectors(int64_t channel) const {
    for (int64_t u = 0; u < rows.taps; ++u)
      for (int64_t v = 0; v < columns.taps;) {
        const int64_t left = columns.taps - v, taps = left >= 5 ? 5 : left >= 3 ? 3 : 1;
        if (taps == 5)
          of_taps<5, n>(u, v, channel);
        else if (taps == 3)
          of_taps<3, n>(u, v, channel);
        else
          of_taps<1, n>(u, v, channel);
        v += taps;
      }
  }

  // All taps of a channel that is left beside the vectors.
  void of_one(int64_t channel) const {
    for (int64_t u = 0; u < rows.taps; ++u)
      for (int64_t v = 0; v < columns.taps; ++v) {
        const Range i = inside(rows, u), j = inside(columns, v);
        W sum = 0;
        for (int64_t row = i.begin; row < i.end; ++row)
          for (int64_t k = j.begin; k < j.end; ++k) {
            const int64_t y = row * rows.stride + u - rows.padding,
                          x = k * columns.stride + v - columns.padding;
            sum += W(dy[(row * columns.places + k) * channels + channel]) *
                   W(image[(y * columns.entries + x) * channels + channel]);
          }
        dfilters[(u * columns.taps + v) * channels + channel] += sum;
      }
  }

  // Adds the image's part, for some channels of the whole image after others: their sums stay in registers.
  void add_image() const {
    int64_t c = 0;
    for (; c + 2 * lanes<W> <= channels; c += 2 * lanes<W>) of_vectors<2>(c);
    for (; c + lanes<W> <= channels; c += lanes<W>) of_vectors<1>(c);
    for (; c < channels; ++c) of_one(c);
  }
};

}  // namespace tessera
