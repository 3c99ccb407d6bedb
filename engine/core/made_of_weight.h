#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/core/storage.h"

namespace tessera {

namespace detail {

// The memory of `bytes` that make() has filled from a weight, which begins at `weight`. `kind` names what is
// made, because a weight may serve several kernels. The memory is made anew unless the weight is frozen
// (FrozenWeights).
std::shared_ptr<const Storage> made_of_weight(const void* weight, const char* kind, size_t bytes,
                                              const std::function<void(void*)>& make);

}  // namespace detail

// The numbers that a kernel makes of a weight, kept while the weight is frozen: make(W*) writes them. It is
// called in a DryRun too, to allocate what it needs, and then returns.
template <class W> class MadeOfWeight {
 public:
  template <class Make>
  MadeOfWeight(const void* weight, const char* kind, int64_t elements, const Make& make)
      : memory_(detail::made_of_weight(weight, kind, static_cast<size_t>(elements) * sizeof(W),
                                       [&](void* to) { make(static_cast<W*>(to)); })) {}

  const W* data() const { return static_cast<const W*>(memory_->data()); }

 private:
  std::shared_ptr<const Storage> memory_;
};

}  // namespace tessera
