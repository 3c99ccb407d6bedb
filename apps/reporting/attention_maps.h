#pragma once

// Where a model looks: its attention over the tokens of an image, layer by layer.

#include <string>
#include <vector>

#include "models/model.h"
#include "models/parts/token_layout.h"

namespace tessera {

// One number for each token of the image's grid, row by row. [h, w]
struct HeatMap {
  Grid grid;
  std::vector<double> values;
};

// The attention probabilities of one layer for one image, by head. A decomposed attention (RMT) attends along
// rows and then along columns; its matrix is the product of the two parts, columns times rows.
class AttentionLayer {
 public:
  // The probabilities of one softmax, and where its tokens lie on the image.
  struct Part {
    Part(const TokenLayout& places, const Tensor& probabilities);

    TokenLayout places;
    std::vector<int64_t> order;  // the token at each place of the sequences
    Tensor probabilities;        // [sequences, H, queries, keys]
  };

  AttentionLayer(std::string path, Part part);

  // Adds the second part of a decomposed attention.
  void add(Part part) { parts_.push_back(std::move(part)); }

  const std::string& path() const { return path_; }  // of the module, "blocks.0.attn"
  int64_t heads() const { return parts_.front().probabilities.dim(1); }
  Grid grid() const { return parts_.front().places.grid; }
  int64_t prefix() const { return parts_.front().places.prefix; }
  int64_t tokens() const { return prefix() + grid().height * grid().width; }
  // Whether the class token is the only query, as in CaiT's class layers.
  bool class_token_only() const;

  // How much each token (row) attends to each token (column), for one head or as the mean over the heads.
  // f64 [tokens, tokens], or [1, tokens] where the class token is the only query.
  Tensor matrix(int64_t head) const;
  Tensor mean_matrix() const;

  // Attention from the class token to the patches; without a class token, the mean over all queries.
  HeatMap head_heat(int64_t head) const { return heat_of(matrix(head)); }
  HeatMap mean_heat() const { return heat_of(mean_matrix()); }

 private:
  HeatMap heat_of(const Tensor& matrix) const;

  std::string path_;
  std::vector<Part> parts_;
};

// The output and all attention layers of one forward pass.
struct AttentionRecord {
  Tensor logits;  // [1, K]
  std::vector<AttentionLayer> layers;
};

// Runs one image [1, C, H, W], with attention_plain in place of the fused kernel, which keeps no
// probabilities. Fails for a model without attention.
AttentionRecord record_attention(const Model& model, const Tensor& image);

// Attention rollout (Abnar and Zuidema, "Quantifying attention flow in transformers", 2020): the product over
// all layers of (A + I) / 2, with A the mean over the heads. Returns the share of each patch of the first
// grid in the class token, or in the mean of all tokens where there is no class token. Where a stage reduces
// the grid, each new token takes the mean of the tokens that it covers.
HeatMap attention_rollout(const std::vector<AttentionLayer>& layers);

}  // namespace tessera
