#pragma once

// The order in which the gradients of a batch's micro-batches are added up. It depends on their number n
// alone:
//   sum of [0, n) = sum of [0, m) + sum of [m, n),  m the largest power of two below n

#include <utility>
#include <vector>

#include "apps/training/ranks.h"

namespace tessera {

/// The micro-batches [first, first + count), a branch of the tree.
struct Branch {
  int64_t first, count;
};

/// Whether the branch `second` is the second half of one whose first half is `first`.
inline bool joins(const Branch& first, const Branch& second) {
  return first.count == second.count && first.first % (2 * first.count) == 0 &&
         first.first + first.count == second.first;
}

/// The largest branches that a share is made of, one after another.
std::vector<Branch> branches_of(Share share);

/// The additions that give the sum over consecutive branches from 0 on, in their order: (a, b) adds what is
/// in the place of branch b to the place of branch a. The sum is in place 0.
std::vector<std::pair<size_t, size_t>> additions_of(const std::vector<Branch>& branches);

}  // namespace tessera
