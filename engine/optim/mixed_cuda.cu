#include "engine/cuda/items.h"
#include "engine/optim/mixed_kernels.h"

namespace tessera {

template <> void MixedKernels<Cuda>::narrow(const MixedItem* items, int64_t count) {
  for_items(Items<MixedItem>(items, count, TableKind::constant),
            [] __device__(const MixedItem& item, int64_t i) { item.narrow[i] = bf16(item.wide[i]); });
}

template <> void MixedKernels<Cuda>::widen(const MixedItem* items, int64_t count) {
  for_items(Items<MixedItem>(items, count, TableKind::constant),
            [] __device__(const MixedItem& item, int64_t i) {
              const auto x = float(item.narrow[i]);
              item.wide[i] = item.add ? item.wide[i] + x : x;
            });
}

}  // namespace tessera
