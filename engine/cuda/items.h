#pragma once

// One launch for hundreds of arrays, such as all parameters of a model.

#include <vector>

#include "engine/cuda/reduce.h"

namespace tessera {

// Arrays, each described by an item with its length n, cut into chunks. Device memory holds the items and how
// many chunks come before each of them. The cut depends on the lengths alone.
template <class Item> class Items {
 public:
  static constexpr int64_t chunk = 1 << 12;

  // The items as a kernel's argument.
  struct View {
    const Item* items;
    const int64_t* before;
    int64_t count, chunks;

    // Calls f(item, i) for the elements of chunk c, by the threads of a block.
    template <class F> __device__ void each(int64_t c, F&& f) const {
      int64_t low = 0, high = count - 1;  // the last item with before <= c
      while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (before[middle] <= c)
          low = middle;
        else
          high = middle - 1;
      }
      const Item item = items[low];
      const int64_t begin = (c - before[low]) * chunk, end = min(item.n, begin + chunk);
      for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) f(item, i);
    }
  };

  Items(const Item* items, int64_t count, TableKind numbers = TableKind::refreshed)
      : Items(items, count, starts(items, count), numbers) {}

  View view() const { return {items_.data(), before_.data(), count_, chunks_}; }
  int64_t chunks() const { return chunks_; }

 private:
  Items(const Item* items, int64_t count, const std::vector<int64_t>& before, TableKind numbers)
      : count_(count),
        chunks_(before.back()),
        items_(items, count, numbers),
        before_(before.data(), count, TableKind::constant) {}

  static std::vector<int64_t> starts(const Item* items, int64_t count) {
    std::vector<int64_t> before{0};
    for (int64_t i = 0; i < count; ++i) before.push_back(before.back() + (items[i].n + chunk - 1) / chunk);
    return before;
  }

  int64_t count_, chunks_;
  Table<Item> items_;
  Table<int64_t> before_;
};

namespace items_detail {

template <class View, class F> __global__ void each(View view, F f) {
  wait_for_previous_kernel();
  for (int64_t c = blockIdx.x; c < view.chunks; c += gridDim.x) view.each(c, f);
}

// parts[c] = the sum of f over chunk c.
template <class View, class F> __global__ void sum(View view, F f, double* parts) {
  wait_for_previous_kernel();
  for (int64_t c = blockIdx.x; c < view.chunks; c += gridDim.x) {
    double own = 0;
    view.each(c, [&](const auto& item, int64_t i) { own += f(item, i); });
    own = block_sum(own);
    if (threadIdx.x == 0) parts[c] = own;
  }
}

}  // namespace items_detail

// Calls f(item, i) for all elements of all items.
template <class Item, class F> void for_items(const Items<Item>& items, const F& f) {
  using View = typename Items<Item>::View;
  if (items.chunks() > 0)
    launch(items_detail::each<View, F>, grid_for(items.chunks() * block_threads), items.view(), f);
}

// parts[c] = the sum of f(item, i), in double, over chunk c, for c below items.chunks().
template <class Item, class F> void sum_items(const Items<Item>& items, const F& f, double* parts) {
  using View = typename Items<Item>::View;
  if (items.chunks() > 0)
    launch(items_detail::sum<View, F>, grid_for(items.chunks() * block_threads), items.view(), f, parts);
}

}  // namespace tessera
