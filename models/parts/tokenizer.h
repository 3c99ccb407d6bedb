#pragma once

#include <string>

#include "engine/io/json.h"
#include "engine/nn/layer_norm.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"
#include "engine/ops/patches.h"

namespace tessera {

// From an image to tokens (reference/tokenizers.py):
//
//   patch          x -> E P(x), then a layer norm if post_norm (Swin)
//   shifted (SPT)  x -> E LN(P([x, x_1, ..., x_S])), x_d the image moved by floor(patch_size * ratio) pixels
//
// P cuts the image into P x P patches, row by row, each flattened as (c, p1, p2). E is a convolution's weight
// [D, C, P, P], used as a linear map. A stride other than P lets the patches of kind patch overlap, as in the
// PiT paper.
struct Tokenizer {
  struct Options {
    bool shifted = false;
    int64_t patch_size = 0, stride = 0;  // stride 0: the patches lie side by side
    Directions directions = Directions::diagonal;
    double ratio = 0.5;
    bool post_norm = false;
  };

  Tokenizer() = default;
  // The map starts by the scope's rule, or by `init` where one is given.
  Tokenizer(const Scope& scope, const Options& options, int64_t in_channels, int64_t dim, double eps,
            const Init& init = nullptr);

  Tensor operator()(const Tensor& image) const;  // [B, C, H, W] -> [B, N, D]

  Options options;
  LayerNorm norm;       // before the map for SPT, after it for post_norm
  Tensor weight, bias;  // [D, C(S+1), P, P], [D]
  std::string path;

 private:
  Tensor map() const;                             // [D, C(S+1) P P]
  Tensor overlapping(const Tensor& image) const;  // [B, N, D]
};

// The config's "tokenizer" object, for architectures that take kinds patch and shifted.
Tokenizer::Options read_tokenizer(Fields fields);
// "directions": cardinal, diagonal (where it is left out) or all.
Directions read_directions(Fields& fields);

// How many shifted copies there are.
int64_t copies(Directions directions);

// The grid of an image's patches. Fails if they lie side by side and are no whole number, and if the image is
// smaller than one.
Grid patch_grid(int64_t image_size, const Tokenizer::Options& options);

}  // namespace tessera
