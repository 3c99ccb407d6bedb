#pragma once

#include <string>

#include "engine/io/json.h"
#include "engine/nn/layer_norm.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/patches.h"

namespace tessera {

/// Turns an image into tokens:
///
///   patch          x -> E P(x), then a layer norm with post_norm (Swin)
///   shifted (SPT)  x -> E LN(P([x, x_1, ..., x_S])), x_d the image shifted by floor(patch_size * ratio)
///   pixels
///
/// P cuts the image into P x P patches, row by row, each flattened as (c, p1, p2). E is a convolution's
/// weight [D, C, P, P], used as a linear map. A stride below P makes the patches of kind patch overlap, as in
/// the PiT paper.
struct Tokenizer {
  struct Options {
    bool shifted = false;
    int64_t patch_size = 0, stride = 0;  ///< stride 0: the patches lie side by side
    Directions directions = Directions::diagonal;
    double ratio = 0.5;
    bool post_norm = false;
  };

  Tokenizer() = default;
  /// The weight is initialised by `init`, or by the scope's rule if that is null.
  Tokenizer(const Scope& scope, const Options& options, int64_t in_channels, int64_t dim, double eps,
            const Init& init = nullptr);

  Tensor operator()(const Tensor& image) const;  ///< [B, C, H, W] -> [B, N, D]

  Options options;
  LayerNorm norm;       ///< before the map for SPT, after it for post_norm
  Tensor weight, bias;  ///< [D, C(S+1), P, P], [D]
  std::string path, proj_path;

 private:
  Tensor projected(const Tensor& patches) const;  ///< [B, N, C(S+1) P P] -> [B, N, D]
  Tensor overlapping(const Tensor& image) const;  ///< [B, N, D]
};

/// Reads the config's "tokenizer" object of an architecture that takes kinds patch and shifted.
Tokenizer::Options read_tokenizer(Fields fields);
/// Reads "directions": cardinal, diagonal (the default) or all.
Directions read_directions(Fields& fields);

/// SPT's shift in pixels: floor(patch_size * ratio).
int64_t shift_of(int64_t patch_size, double ratio);
/// Reads "ratio" (0.5). Where the image is shifted at all, fails for a ratio above 0 whose shift is 0 pixels.
double read_shift_ratio(Fields& fields, int64_t patch_size, bool shifts);

/// The number of shifted copies of the image: 4, or 8 for all.
int64_t copies(Directions directions);

/// The grid of an image's patches. Fails if the image is smaller than a patch, or if patches that lie side by
/// side do not fill it exactly.
Grid patch_grid(int64_t image_size, const Tokenizer::Options& options);

}  // namespace tessera
