#pragma once

#include "apps/training/ranks.h"
#include "data/dataset.h"

namespace tessera {

/// The ranks of a machine keep one copy of a data set's pictures together, in memory that has no name and is
/// gone with the last of them: of pictures in memory (StoredSplit) all, of picture files those that are
/// decoded and kept (FileSplit). All ranks call it, with the same data set. A rank that finds other bytes
/// there than its own, or too little shared memory, keeps its own. Pictures in memory that have masks stay as
/// they are. Returns how many bytes this rank shares with others, at most.
size_t share_data(Ranks& ranks, Dataset& dataset);

}  // namespace tessera
