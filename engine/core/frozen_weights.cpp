#include "engine/core/frozen_weights.h"

#include <oneapi/tbb/mutex.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"

namespace tessera {

namespace {

// A key has the kind of what was made, its bytes, and the place in the weight from which it was made.
using Key = std::tuple<std::string_view, std::array<int64_t, 4>, size_t, const void*>;

struct Frozen {
  size_t bytes = 0;
  int holders = 0;
  std::map<Key, std::shared_ptr<const Storage>> made = {};
};

tbb::mutex mutex;                        // guards the map; it spins, as that of Pool (storage.cpp) does
std::map<const std::byte*, Frozen> all;  // the key is the weight's first byte

// The entry of the weight in which this byte lies, or null.
Frozen* frozen_at(const std::byte* byte) {
  auto after = all.upper_bound(byte);
  if (after == all.begin()) return nullptr;
  const auto& [first, frozen] = *--after;
  return byte < first + frozen.bytes ? &after->second : nullptr;
}

const std::byte* first_byte(const Tensor& weight) { return static_cast<const std::byte*>(weight.raw()); }
const std::byte* first_byte(const Storage& made) { return static_cast<const std::byte*>(made.data()); }

// The new memory gets an entry of its own, because it does not change either, and more may be made of it.
void keep(std::shared_ptr<const Storage>& slot, const std::shared_ptr<const Storage>& made) {
  if (slot) return;  // another thread has been faster
  all[first_byte(*made)] = {.bytes = made->bytes()};
  slot = made;
}

void forget(const std::byte* first) {
  const auto at = all.find(first);
  for (const auto& [key, made] : at->second.made)
    if (made) forget(first_byte(*made));
  all.erase(at);
}

}  // namespace

FrozenWeights::FrozenWeights(NamedTensors weights) : weights_(std::move(weights)) {
  std::erase_if(weights_, [](const auto& weight) { return !weight.second.defined(); });
  const std::lock_guard lock(mutex);
  for (const auto& [name, weight] : weights_) {
    Frozen& frozen = all[first_byte(weight)];
    frozen.bytes = std::max(frozen.bytes, weight.bytes());
    ++frozen.holders;
  }
}

FrozenWeights::~FrozenWeights() {
  const std::lock_guard lock(mutex);
  for (const auto& [name, weight] : weights_) {
    const std::byte* const first = first_byte(weight);
    if (--all.at(first).holders == 0) forget(first);
  }
}

namespace detail {

// The lock is open while make() runs, for the threads of its loops may run others' tasks meanwhile, which
// come here too.
std::shared_ptr<const Storage> made_of_weight(const void* weight, const MadeKind& kind, size_t bytes,
                                              const std::function<void(void*)>& make) {
  const auto* first = static_cast<const std::byte*>(weight);
  const auto known = [&]() -> std::shared_ptr<const Storage>* {
    Frozen* const frozen = frozen_at(first);
    return frozen ? &frozen->made[{kind.name, kind.shape, bytes, weight}] : nullptr;
  };
  const bool keeps = !DryRun::active();  // the memory of a dry run holds nothing
  if (keeps) {
    const std::lock_guard lock(mutex);
    if (const auto* kept = known(); kept && *kept) return *kept;
  }
  const auto made = std::make_shared<const Storage>(Device::cpu, bytes);
  make(made->data());
  if (!keeps) return made;
  const std::lock_guard lock(mutex);
  if (auto* kept = known()) keep(*kept, made);
  return made;
}

}  // namespace detail

}  // namespace tessera
