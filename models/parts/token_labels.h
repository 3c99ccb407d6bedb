#pragma once

#include "models/model.h"
#include "models/parts/attention.h"

namespace tessera {

// Token labelling (LV-ViT; Jiang et al., 2021): every patch is classified too, against what a teacher sees
// there, and boxes of tokens are exchanged between images (mix-token).

// Rows top .. bottom-1 and columns left .. right-1 of the grid of tokens.
struct Box {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// Mix-token's box: sides sqrt(1 - lam) of the grid's, lam uniform, around a random token; clipped.
Box draw_box(Grid grid, Random& random);
// [top, bottom, left, right] i64, as fixtures hold it.
Box to_box(const Tensor& sides);

// 1 for the tokens in the box, 0 for the others: f32 [N, 1]. Fails for a box that is not inside the grid.
Tensor mask_of(Grid grid, const Box& box);

// Every image gets the box of the image at the mirrored place in the batch, [B, N, D] -> [B, N, D]; `inside`
// is the box's mask, of the tokens' type, and on their device. Done twice it does nothing.
Tensor swap_box(const Tensor& tokens, const Tensor& inside);

// Targets of images [B, K] and of their patches [B, N, K].
struct TokenTargets {
  Tensor images, patches;
};

// The targets among a training step's inputs, alike to the logits [B, K] in type: "target" (and "target_b",
// "lam"; see models/model.h), classes made soft; "aux_target" [B, N, K], or where there is none, each patch's
// is its image's.
TokenTargets targets_of(const TensorMap& inputs, const Tensor& logits, int64_t patches);

// CE(logits [B, K], images) + 0.5 mean over patches CE(aux [B, N, K], patches). With a box's mask, which is
// as in swap_box, the images' targets are mixed by its share of the grid; aux was swapped back, so the
// patches' are not.
Tensor token_label_loss(const Tensor& logits, const Tensor& aux, const TokenTargets& targets,
                        const Tensor& inside = {}, const LossOptions& options = {});

// Where an image that a model sees lies in the whole one that a teacher saw: the point (x, y) of it, in
// fractions of its width and height, is (a x + b y + c, d x + e y + f) of the whole.
struct View {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

// Soft targets for an image, [K], and for the patches of its token grid, [N, K], from a teacher's map of the
// whole one: its T largest logits `values` [T, h, w] and their classes `indices` i64 [T, h, w], the others
// counting as 0. The map is read by RoIAlign, of ceil(length / cells) bilinear samples a side and cell, whose
// border repeats, then softmaxed over the classes and smoothed: (1 - smoothing) p + smoothing / K. The result
// has the type of `values`.
TokenTargets token_targets(const Tensor& values, const Tensor& indices, const View& view, Grid grid,
                           int64_t classes, double smoothing = 0.1);
// The same of a batch, without smoothing: [B, K] and [B, N, K] f32, of maps [B, 2, T, h, w] f32, the logits
// and their classes, and views [B, 6] f64, a to f.
TokenTargets token_targets(const Tensor& maps, const Tensor& views, Grid grid, int64_t classes);

}  // namespace tessera
