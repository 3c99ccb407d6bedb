#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

struct SamplerOptions {
  int64_t batch = 128;
  bool shuffle = true;      ///< a new permutation for every pass; false: in order
  int64_t passes = 1;       ///< an epoch has passes x images indices
  int64_t repetitions = 1;  ///< each index is emitted so many times in a row (repeated augmentation)
  int64_t multiple = 1;     ///< an epoch is cut to a multiple of this; DeiT's code uses 256
  bool drop_last = true;    ///< drops the incomplete batch at the end of an epoch
};

/// Chooses the images of each batch of an epoch: concatenates permutations of all images, emits each index
/// `repetitions` times, cuts the result at the epoch's length, and then into batches, which may span
/// permutations.
class Sampler {
 public:
  /// Fails unless all options are positive and an epoch has at least one batch.
  Sampler(int64_t images, const SamplerOptions& options, uint64_t seed);

  int64_t batch() const { return options_.batch; }
  bool shuffles() const { return options_.shuffle; }
  int64_t batches() const;  ///< per epoch
  int64_t images() const;   ///< in all batches of an epoch
  /// The indices of epoch `number`. [images()]
  std::vector<int64_t> epoch(int64_t number) const;
  /// The indices of an epoch made of the given permutations, which are concatenated.
  std::vector<int64_t> walk(std::span<const int64_t> permutations) const;

 private:
  int64_t length() const;        ///< indices of an epoch before incomplete batches are dropped
  int64_t permutations() const;  ///< that an epoch reads; the last one may be read in part

  int64_t size_;
  SamplerOptions options_;
  uint64_t seed_;
};

}  // namespace tessera
