#include "data/subset.h"

#include <algorithm>
#include <numeric>

#include "engine/core/error.h"
#include "engine/core/random.h"

namespace tessera {

namespace {

class Subset : public Split {
 public:
  Subset(std::shared_ptr<const Split> whole, std::vector<int64_t> chosen)
      : whole_(std::move(whole)), chosen_(std::move(chosen)) {}

  int64_t size() const override { return std::ssize(chosen_); }
  int64_t label(int64_t i) const override { return whole_->label(at(i)); }
  void image(int64_t i, Image& out) const override { whole_->image(at(i), out); }
  void original(int64_t i, Image& out) const override { whole_->original(at(i), out); }
  std::string source(int64_t i) const override { return whole_->source(at(i)); }
  std::string name(int64_t i) const override { return whole_->name(at(i)); }
  bool has_masks() const override { return whole_->has_masks(); }
  void mask(int64_t i, Image& out) const override { whole_->mask(at(i), out); }
  void original_mask(int64_t i, Image& out) const override { whole_->original_mask(at(i), out); }
  bool has_latents() const override { return whole_->has_latents(); }
  void latent(int64_t i, Random random, float* to) const override { whole_->latent(at(i), random, to); }
  const Split& whole() const override { return whole_->whole(); }

 private:
  int64_t at(int64_t i) const { return chosen_[static_cast<size_t>(i)]; }

  std::shared_ptr<const Split> whole_;
  std::vector<int64_t> chosen_;
};

}  // namespace

std::shared_ptr<const Split> subset(std::shared_ptr<const Split> split, int64_t count, uint64_t seed) {
  const int64_t size = split->size();
  check(count >= 0 && count <= size, "data: ", count, " pictures are asked for, there are ", size);
  if (count == 0 || count == size) return split;
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(seed, 1);
  for (int64_t i = 0; i < count; ++i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + random.below(size - i))]);
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  return std::make_shared<Subset>(std::move(split), std::move(order));
}

}  // namespace tessera
