#pragma once

#include <vector>

#include "data/formats/box.h"
#include "engine/core/random.h"
#include "engine/core/tensor.h"

namespace tessera {

/// Mixup (Zhang et al., 2018) and CutMix (Yun et al., 2019): each image of a batch is mixed with another one
/// of the batch, and its target is lam of its own class and 1 - lam of the other's.
struct MixOptions {
  double mixup = 0;           ///< lam ~ Beta(mixup, mixup); 0: no Mixup
  double cutmix = 0;          ///< lam ~ Beta(cutmix, cutmix); 0: no CutMix
  double probability = 1;     ///< that a batch is mixed
  double cutmix_share = 0.5;  ///< fraction of CutMix among mixed batches if both are on

  bool any() const { return probability > 0 && (mixup > 0 || cutmix > 0); }
};

/// How one batch is mixed; it is not mixed if `partners` is empty.
struct Mix {
  std::vector<int64_t> partners;  ///< index of the other image for each. [B]
  double lam = 1;                 ///< share of the own image, after the box is clipped
  bool cut = false;               ///< true: CutMix by `box`; false: Mixup
  PixelBox box;
};

/// Draws in this order: whether to mix, Mixup or CutMix, lam, a permutation of the batch, and CutMix's
/// centre.
Mix draw_mix(const MixOptions& options, int64_t images, int64_t height, int64_t width, Random& random);

/// A sample of the distribution Beta(a, a), a > 0.
double draw_beta(double a, Random& random);

/// CutMix's box around a pixel: trunc(side sqrt(1 - lam)) pixels a side, made even by rounding down, clipped
/// to the image.
PixelBox cutmix_box(int64_t height, int64_t width, double lam, int64_t row, int64_t column);
/// The share of the image outside the box, which is CutMix's final lam.
double share_outside(const PixelBox& box, int64_t height, int64_t width);

/// Mixes the images [B, C, H, W] f32 into `to`, of the same shape and separate memory.
void mix_images(const Tensor& images, const Mix& mix, Tensor& to);
/// Writes the labels [B] i64 of the partners to `to`.
void partner_labels(const Tensor& labels, const Mix& mix, Tensor& to);

}  // namespace tessera
