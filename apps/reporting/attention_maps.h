#pragma once

// Where a model looks: its attention over the tokens of the image's map, layer by layer.

#include <string>
#include <vector>

#include "models/model.h"
#include "models/parts/token_layout.h"

namespace tessera {

// Numbers over a map of tokens, row by row. [h, w]
struct Heat {
  Grid grid;
  std::vector<double> values;
};

// What one attention of a model did with one image: softmax probabilities of every head. Of a decomposed
// attention (RMT), the product of its two parts, columns times rows, which is what its values go through.
class AttentionLayer {
 public:
  struct Part {
    Part(const TokenLayout& places, const Tensor& probabilities);

    TokenLayout places;
    std::vector<int64_t> order;  // the token at each place, all of the map
    Tensor probabilities;        // [sequences, H, queries, keys]
  };

  AttentionLayer(std::string path, Part part);

  // The second part of the same attention.
  void add(Part part) { parts_.push_back(std::move(part)); }

  const std::string& path() const { return path_; }  // of its module
  int64_t heads() const { return parts_.front().probabilities.dim(1); }
  Grid grid() const { return parts_.front().places.grid; }
  int64_t prefix() const { return parts_.front().places.prefix; }
  int64_t tokens() const { return prefix() + grid().height * grid().width; }
  // Whether the class token alone asks, as in CaiT's class layers.
  bool of_class_alone() const;

  // How much each token (row) looks at each (column): one head's, or the mean over all. f64 [tokens, tokens],
  // or [1, tokens] where the class token alone asks.
  Tensor matrix(int64_t head) const;
  Tensor mean_matrix() const;

  // Where the class token looks; where there is none, where all tokens look on average.
  Heat head_heat(int64_t head) const { return heat_of(matrix(head)); }
  Heat mean_heat() const { return heat_of(mean_matrix()); }

 private:
  Heat heat_of(const Tensor& matrix) const;

  std::string path_;
  std::vector<Part> parts_;
};

struct Looked {
  Tensor logits;  // [1, K]
  std::vector<AttentionLayer> layers;
};

// Runs one image [1, C, H, W] with attention as it is defined (attention_plain). Fails for a model that has
// no attention.
Looked look(const Model& model, const Tensor& image);

// Attention rollout (Abnar and Zuidema, 2020): through all layers the product of (A + I) / 2, with A the mean
// over the heads, as the share of each patch of the first map in the class token, or in the mean of all
// tokens where there is none. Where a stage halves the map, its tokens take the mean of those they cover.
Heat rollout(const std::vector<AttentionLayer>& layers);

}  // namespace tessera
