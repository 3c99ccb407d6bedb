#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/core/storage.h"

namespace tessera {

// A kind tells apart what kernels make of one weight: several may use it, and read its memory in several
// shapes.
struct MadeKind {
  const char* name;
  std::array<int64_t, 4> shape;  // of the weight

  MadeKind(const char* kind, const std::array<int64_t, 4>& weight_shape) : name(kind), shape(weight_shape) {}
};

namespace detail {

// The memory of `bytes` that make() has filled from a weight, which begins at `weight`. It is made anew
// unless the weight is frozen (FrozenWeights).
std::shared_ptr<const Storage> made_of_weight(const void* weight, const MadeKind& kind, size_t bytes,
                                              const std::function<void(void*)>& make);

}  // namespace detail

// The numbers that a kernel makes of a weight, kept while the weight is frozen: make(W*) writes them. It is
// called in a DryRun too, to allocate what it needs, and then returns.
template <class W> class MadeOfWeight {
 public:
  template <class Make>
  MadeOfWeight(const void* weight, const MadeKind& kind, int64_t elements, const Make& make)
      : memory_(detail::made_of_weight(weight, kind, static_cast<size_t>(elements) * sizeof(W),
                                       [&](void* to) { make(static_cast<W*>(to)); })) {}

  const W* data() const { return static_cast<const W*>(memory_->data()); }

 private:
  std::shared_ptr<const Storage> memory_;
};

}  // namespace tessera
