#pragma once

#include <functional>
#include <vector>

#include "engine/autograd/tape.h"

namespace tessera {

/// While it lives, tells of each leaf that a tape's backward pass adds nothing more to its gradient: when the
/// first op that read it has been read back. A leaf that the tape has not read is told of at once; one that
/// only the last steps in which no gradient flows have read is not told of.
class LeafArrivals {
 public:
  /// The tape has recorded all, and was not read yet. `arrived` is called with the leaf's number.
  LeafArrivals(const Tape& tape, const std::vector<Tensor>& leaves, std::function<void(size_t)> arrived);

 private:
  void look(const BackwardEvent& event);

  struct Reading {
    size_t step, leaf;  ///< the first step that has read the leaf
  };

  const Tape& tape_;
  std::function<void(size_t)> arrived_;
  std::vector<Reading> awaited_;  ///< the one that comes next is the last one
  size_t next_;                   ///< the steps before it were not read back yet
  Observer observer_;
};

}  // namespace tessera
