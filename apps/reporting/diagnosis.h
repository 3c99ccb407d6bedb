#pragma once

// What the layers of attention have learned, in the numbers of the papers: temperatures and how far attention
// is from uniform (Lee et al., "Vision Transformer for Small-Size Datasets", 2021, figures 3 and 4), spatial
// priors (SP-ViT, Zhou et al., 2022) and spatial decay (RMT, Fan et al., 2024; SDT, Mao et al., 2025).

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/parts/token_layout.h"

namespace tessera {

// One layer of attention, in the order of the forward pass. Values by head have `heads` entries.
struct LayerDiagnosis {
  std::string path;  // of the module, "blocks.0.attn"
  Grid grid;
  int64_t heads = 0;
  double sqrt_width = 0;  // sqrt(d) of the keys' d channels, the temperature of a standard ViT; 0: unknown
  bool learned = false;   // whether the temperature is a parameter
  std::vector<double> temperature;  // tau of softmax(q k / tau), 1 / scale
  // The mean over images and queries i of the Kullback-Leibler divergence from the uniform distribution over
  // the N keys, sum_j p_ij log(N p_ij), in nats: 0 where attention is flat. N counts a query's own key too
  // where the diagonal is masked, and is a window's keys in Swin. Attention along rows and then columns (RMT)
  // counts as the product of both parts.
  std::vector<double> divergence;
  // True where attention goes along the rows of the grid and then along its columns (RMT's and SDT's first
  // stages). Such a layer uses the entries of `decay` in the query's own row and column alone.
  bool decomposed = false;
  Tensor decay;  // f64 [H, h, w]: the decay of the asked query's scores; undefined without decay
};

// A learned prior Omega of SP-SA by offset: entry [p, dy + h - 1, dx + w - 1] is the factor of head p for a
// key dy rows below and dx columns right of its query.
struct PriorDiagnosis {
  std::string path;  // "blocks.0.attn.prior", or "prior" where all layers share one
  Tensor omega;      // f64 [H, 2h-1, 2w-1]
};

// A place on the picture, from 0 (top, left) to 1.
struct Place {
  double row = 0.5, column = 0.5;
};

// The row and column of the token of a grid that covers the place.
Grid token_at(Place place, Grid grid);

class AttentionDiagnosis {
 public:
  // The model must outlive this object.
  explicit AttentionDiagnosis(const Model& model) : model_(model) {}

  // Adds the attention of images [B, C, H, W] to the mean divergences. Fails for a model without attention.
  void add(const Tensor& images);
  // Computes priors, and the decay around `query` in one image [1, C, H, W].
  void look_at(const Tensor& image, Place query);

  const std::vector<PriorDiagnosis>& priors() const { return priors_; }
  std::vector<LayerDiagnosis> layers() const;

 private:
  // The sums of a layer over all rows of attention so far.
  struct Sums {
    LayerDiagnosis layer;
    std::vector<double> divergence;  // by head
    int64_t rows = 0;                // of one head
  };

  Sums new_layer(const std::string& path, Grid grid, int64_t heads) const;

  const Model& model_;
  std::vector<Sums> sums_;
  std::map<std::string, Tensor> decays_;  // by path
  std::vector<PriorDiagnosis> priors_;
};

// As JSON: {"layers": [...], "priors": [...]}, matrices as nested lists.
Json to_json(const AttentionDiagnosis& diagnosis);

}  // namespace tessera
