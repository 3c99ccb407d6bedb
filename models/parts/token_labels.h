#pragma once

#include "models/model.h"
#include "models/parts/attention.h"

namespace tessera {

// Token labelling (LV-ViT; Jiang et al., 2021): every patch is classified too, with a teacher's scores at
// that place as its target, and images exchange boxes of tokens (mix-token).

/// A box of rows top .. bottom-1 and columns left .. right-1 of the token grid.
struct Box {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

/// Draws mix-token's box: its sides are sqrt(1 - lam) of the grid's with lam uniform in [0, 1), its centre is
/// a random token, and it is clipped to the grid.
Box draw_box(Grid grid, Random& random);
/// The box of [top, bottom, left, right] i64, the form in which fixtures hold it.
Box to_box(const Tensor& sides);

/// The mask of a box: 1 for its tokens, 0 for the others. Fails for a box that is not inside the grid. f32
/// [N, 1]
Tensor mask_of(Grid grid, const Box& box);

/// Exchanges the box of image b with that of image B - 1 - b, [B, N, D] -> [B, N, D]. `inside` is the box's
/// mask, of the tokens' type and on their device. Applied twice it changes nothing.
Tensor swap_box(const Tensor& tokens, const Tensor& inside);

/// Targets of images [B, K] and of their patches [B, N, K].
struct TokenTargets {
  Tensor images, patches;
};

/// The soft targets of a training step, in the type of the logits [B, K]: the images' from "target" (and
/// "target_b", "lam"; see models/model.h), the patches' from "aux_target" [B, N, K]; without that input each
/// patch has its image's target.
TokenTargets targets_of(const TensorMap& inputs, const Tensor& logits, int64_t patches);

/// CE(logits [B, K], images) + 0.5 mean over patches of CE(aux [B, N, K], patches). With a box's mask
/// `inside` (as in swap_box) the images' targets are mixed by the box's share of the grid; the patches' are
/// not, because aux was swapped back.
Tensor token_label_loss(const Tensor& logits, const Tensor& aux, const TokenTargets& targets,
                        const Tensor& inside = {}, const LossOptions& options = {});

/// The place of a training crop within the whole image that the teacher saw: the crop's point (x, y), in
/// fractions of its width and height, is the point (a x + b y + c, d x + e y + f) of the whole image.
struct View {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// Soft targets of a crop, [K], and of the patches of its token grid, [N, K], from a teacher's map of the
/// whole image: its T largest logits `values` [T, h, w] and their classes `indices` i64 [T, h, w]; other
/// classes have the logit 0. The map is read by RoIAlign with ceil(length / cells) bilinear samples per side
/// of a cell and repeated borders. A softmax over the classes gives p, smoothed to (1 - smoothing) p +
/// smoothing / K. The result has the type of `values`. Fails for shapes that do not fit and for a view
/// without area, of more than 4096 places of the map a side, or at no finite place.
TokenTargets token_targets(const Tensor& values, const Tensor& indices, const View& view, Grid grid,
                           int64_t classes, double smoothing = 0.1);
/// Soft targets of a batch, [B, K] and [B, N, K] f32, without smoothing, from maps [B, 2, T, h, w] f32 (the
/// logits and their classes) and views [B, 6] f64 (a to f).
TokenTargets token_targets(const Tensor& maps, const Tensor& views, Grid grid, int64_t classes);

}  // namespace tessera
