#pragma once

#include <vector>

#include "data/augment/box.h"
#include "engine/core/random.h"
#include "engine/core/tensor.h"

namespace tessera {

// Mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019): each picture of a batch is mixed with another one
// of it, and learned as both: lam of its own class and 1 - lam of the other's.
struct MixOptions {
  double mixup = 0;           // lam ~ Beta(mixup, mixup); 0: never Mixup
  double cutmix = 0;          // lam ~ Beta(cutmix, cutmix); 0: never CutMix
  double probability = 1;     // that a batch is mixed at all
  double cutmix_share = 0.5;  // of the mixed batches, where there are both

  bool any() const { return probability > 0 && (mixup > 0 || cutmix > 0); }
};

// How one batch is mixed; not at all where there are no partners.
struct Mix {
  std::vector<int64_t> partners;  // the other picture of each. [B]
  double lam = 1;                 // each picture's own share, after the box was clipped
  bool cut = false;               // CutMix, of `box`; or Mixup
  PixelBox box;
};

// Draws, in this order: whether, which, lam, a permutation of the batch, and CutMix's centre.
Mix draw_mix(const MixOptions& options, int64_t images, int64_t height, int64_t width, Random& random);

// A number of the distribution Beta(a, a), a > 0.
double draw_beta(double a, Random& random);

// CutMix's box around a pixel: of trunc(side sqrt(1 - lam)) pixels a side, an odd one losing one, clipped.
PixelBox cutmix_box(int64_t height, int64_t width, double lam, int64_t row, int64_t column);
// The share of the picture that lies outside the box: CutMix's lam.
double share_outside(const PixelBox& box, int64_t height, int64_t width);

// Pictures [B, C, H, W] f32 mixed into `to`, of the same shape and other memory.
void mix_images(const Tensor& images, const Mix& mix, Tensor& to);
// The labels [B] i64 of the partners, into `to`.
void partner_labels(const Tensor& labels, const Mix& mix, Tensor& to);

}  // namespace tessera
