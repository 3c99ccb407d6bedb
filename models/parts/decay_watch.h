#pragma once

#include <functional>
#include <utility>

#include "engine/core/thread_scope.h"
#include "models/parts/decay.h"

namespace tessera {

/// While one lives, it is told of every spatial decay that an attention of this thread applies, with the
/// tokens x [B, N, D] that it applies to. A decay of fixed rates is no recorded op, so an Observer does not
/// see it.
class DecayWatch : public ThreadScope<DecayWatch> {
 public:
  using Told = std::function<void(const Decay& decay, const Tensor& x)>;

  explicit DecayWatch(Told told) : told_(std::move(told)) {}

  static void tell(const Decay& decay, const Tensor& x) {
    if (current()) current()->told_(decay, x);
  }

 private:
  Told told_;
};

}  // namespace tessera
