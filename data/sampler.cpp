#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "engine/core/error.h"
#include "engine/core/random.h"

namespace tessera {

Sampler::Sampler(int64_t images, const SamplerOptions& options, uint64_t seed)
    : size_(images), options_(options), seed_(seed) {
  check(images > 0, "sampler: ", images, " images");
  check(options.batch > 0, "sampler: batch size ", options.batch, " is not positive");
  check(options.passes > 0 && options.repetitions > 0, "sampler: ", options.passes, " passes, ",
        options.repetitions, " repetitions; both must be positive");
  check(options.multiple > 0, "sampler: an epoch of a multiple of ", options.multiple, " images");
  check(batches() > 0, "sampler: an epoch of ", length(), " images is less than one batch of ", options.batch,
        "; a smaller batch is wanted");
}

int64_t Sampler::length() const { return size_ * options_.passes / options_.multiple * options_.multiple; }

int64_t Sampler::batches() const {
  return options_.drop_last ? length() / options_.batch : (length() + options_.batch - 1) / options_.batch;
}

int64_t Sampler::images() const { return std::min(batches() * options_.batch, length()); }

int64_t Sampler::permutations() const {
  return (options_.passes + options_.repetitions - 1) / options_.repetitions;
}

std::vector<int64_t> Sampler::epoch(int64_t number) const {
  Random random = Random(seed_).split(static_cast<uint64_t>(number));
  std::vector<int64_t> order(static_cast<size_t>(size_ * permutations()));
  for (auto pass = order.begin(); pass != order.end(); pass += size_) {
    std::iota(pass, pass + size_, int64_t{0});
    if (!options_.shuffle) continue;
    for (int64_t i = size_ - 1; i > 0; --i)
      std::swap(pass[i], pass[random.below(i + 1)]);  // Fisher-Yates shuffle
  }
  return walk(order);
}

std::vector<int64_t> Sampler::walk(std::span<const int64_t> permutations) const {
  std::vector<int64_t> order(static_cast<size_t>(images()));
  check(static_cast<int64_t>(permutations.size()) * options_.repetitions >= images(),
        "sampler: ", permutations.size(), " indices, ", options_.repetitions,
        " times each, do not fill an epoch of ", images());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = permutations[i / static_cast<size_t>(options_.repetitions)];
  return order;
}

}  // namespace tessera
