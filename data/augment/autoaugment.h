#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// An operation that is applied with some probability, at one of ten magnitudes.
struct PolicyStep {
  Operation operation;
  double probability;
  int index;  // 0 .. 9
};
using SubPolicy = std::array<PolicyStep, 2>;

// The published policies: cifar10 (used for CIFAR-100 too), svhn, imagenet.
const std::vector<std::string>& policy_names();
// The 25 sub-policies of the policy `name`. Fails for an unknown name.
std::span<const SubPolicy> policy(const std::string& name);

// The magnitude for apply() at index 0 .. 9. `sign` is 1 or -1 and matters to operations that have_sign().
double policy_magnitude(Operation operation, int index, int sign);
bool have_sign(Operation operation);

// AutoAugment (Cubuk et al., 2019) as in "Vision Transformer for Small-Size Datasets" (Lee et al., 2021):
// draws one sub-policy uniformly, then applies each of its two operations with its probability and a random
// sign.
class AutoAugment {
 public:
  explicit AutoAugment(const std::string& name) : policy_(policy(name)) {}
  int most_changes() const { return 2; }
  void draw(Random& random, int height, int width, std::vector<Change>& to) const;
  void operator()(Image& image, Random& random, Layer layer) const {
    draw_and_apply(*this, image, random, layer);
  }

 private:
  std::span<const SubPolicy> policy_;
};

}  // namespace tessera
