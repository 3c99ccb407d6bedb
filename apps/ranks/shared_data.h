#pragma once

#include "apps/training/ranks.h"
#include "data/dataset.h"

namespace tessera {

/// Where a data set keeps its pictures in memory (StoredSplit), the ranks of a machine keep one copy of them
/// together, in memory that has no name and is gone with the last of them. All ranks call it, with the same
/// data set. A rank that finds other bytes there than its own, or too little shared memory, keeps its own.
/// Splits with masks, random subsets, and those of files, which the system's cache shares, stay as they are.
/// Returns how many bytes this rank shares with others.
size_t share_data(Ranks& ranks, Dataset& dataset);

}  // namespace tessera
