#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

struct SamplerOptions {
  int64_t batch = 128;
  bool shuffle = true;      // a fresh permutation for every pass; else in order
  int64_t passes = 1;       // an epoch's length in images: passes x images
  int64_t repetitions = 1;  // each index so often in a row
  int64_t multiple = 1;     // an epoch's length is cut to a multiple of this: 256 in DeiT's code
  bool drop_last = true;    // the short batch at the end of an epoch
};

// Which pictures make up each batch of an epoch: permutations of all pictures one after another, each index
// emitted `repetitions` times, cut off at the epoch's length, then into batches across the permutations'
// borders.
class Sampler {
 public:
  // Fails unless all numbers are positive and an epoch has at least one batch.
  Sampler(int64_t images, const SamplerOptions& options, uint64_t seed);

  int64_t batch() const { return options_.batch; }
  bool shuffles() const { return options_.shuffle; }
  int64_t batches() const;  // in an epoch
  int64_t images() const;   // that its batches hold
  // The indices of an epoch in their order. [images()]
  std::vector<int64_t> epoch(int64_t number) const;
  // The same from given permutations, end to end, as many as repetitions() and passes ask for.
  std::vector<int64_t> walk(std::span<const int64_t> permutations) const;

 private:
  int64_t length() const;        // of an epoch, before it is cut into batches
  int64_t permutations() const;  // that an epoch reads, the last one perhaps in part

  int64_t size_;
  SamplerOptions options_;
  uint64_t seed_;
};

}  // namespace tessera
