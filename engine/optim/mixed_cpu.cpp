#include "engine/core/parallel.h"
#include "engine/optim/chunks.h"
#include "engine/optim/mixed_kernels.h"

namespace tessera {

namespace {

template <class F> void for_elements(const MixedItem* items, int64_t count, F&& f) {
  const Chunks chunks(items, count);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      for (int64_t i = at.begin; i < at.end; ++i) f(items[at.item], i);
    }
  });
}

}  // namespace

template <> void MixedKernels<Cpu>::narrow(const MixedItem* items, int64_t count) {
  for_elements(items, count, [](const MixedItem& item, int64_t i) { item.narrow[i] = bf16(item.wide[i]); });
}

template <> void MixedKernels<Cpu>::widen(const MixedItem* items, int64_t count) {
  for_elements(items, count, [](const MixedItem& item, int64_t i) {
    const auto x = float(item.narrow[i]);
    item.wide[i] = item.add ? item.wide[i] + x : x;
  });
}

}  // namespace tessera
