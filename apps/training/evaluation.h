#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/task.h"
#include "data/loader.h"
#include "models/model.h"
#include "models/segment_inference.h"

namespace tessera {

class Ranks;

/// The answer of a classifier or a segmenter for one picture.
struct Judgement {
  int64_t picture;                     ///< its number in the split
  int64_t label = -1, predicted = -1;  ///< classes; of a classifier only
  int64_t rank = 0;                    ///< number of classes with a larger logit; of a classifier only
  double confidence = 0;               ///< the probability of `predicted`; of a classifier only
  double right = 0;  ///< a classifier's 1 if predicted == label, a segmenter's share of pixels
  double loss = 0;   ///< cross entropy; of a classifier only
};

/// The counts of a model's answers on labelled pictures. A diffusion model has images and loss alone, a
/// segmenter these and the counts of its pixels.
struct Evaluation {
  Task task = Task::classify;
  int64_t classes = 0, images = 0;
  int64_t correct = 0, correct5 = 0;  ///< images whose label has the largest logit, one of the five largest
  double loss_sum = 0;                ///< of cross entropy without smoothing (a segmenter's is a mean over
                                      ///< pixels), or of a diffusion model's training loss
  std::vector<int64_t> confusion;     ///< pictures by label and prediction. [K, K]
  std::optional<SegmentationCounts> pixels;

  double loss() const { return loss_sum / static_cast<double>(images); }
  double top1() const { return static_cast<double>(correct) / static_cast<double>(images); }
  double top5() const { return static_cast<double>(correct5) / static_cast<double>(images); }
  int64_t at(int64_t label, int64_t predicted) const {
    return confusion[static_cast<size_t>(label * classes + predicted)];
  }

  double score() const;  ///< by task; see task.h

  /// Counts the rows of logits [B, K] f32 by their labels [B] i64, both on the CPU. Returns a judgement of
  /// each row, whose `picture` is the row's number.
  std::vector<Judgement> add(const Tensor& logits, const Tensor& labels);
  /// Counts an image of a classifier of so many classes.
  void add(const Judgement& judgement, int64_t of_classes);
  /// Counts predicted pixels [B, H, W] i64 of so many classes by masks [B, H, W] i64.
  void add_pixels(const Tensor& predicted, const Tensor& masks, int64_t of_classes);
  /// Counts `count` images with this mean loss.
  void add_loss(double mean, int64_t count);

  /// The last columns of metrics.csv: loss, top-1 and top-5, empty if the task has none, and a segmenter's
  /// mean IoU and pixel accuracy. As JSON, only those that the task has; and as text for a person.
  std::string csv() const;
  Json json() const;
  std::string text() const;
};

/// The targets of a batch: the labels [B], or a segmenter's masks [B, H, W].
const Tensor& targets_of(const Batch& batch, Task task);

/// The evaluation of a split, with a judgement of each picture.
struct JudgedPass {
  Evaluation evaluation;
  std::vector<Judgement> judgements;
};

struct EvaluateOptions {
  /// Images that go forward at once; 0: a batch of the loader. Not given: 32 on a CPU, a batch on a GPU.
  std::optional<int64_t> micro_batch = std::nullopt;
  Device device = Device::cpu;
  /// Called before each batch with the number of images done; false ends the evaluation.
  std::function<bool(int64_t)> go_on;
  /// If not null, a judgement of each picture is appended. A diffusion model gives none.
  std::vector<Judgement>* judgements = nullptr;
  /// Evaluate together, each rank its share_of() every batch's micro-batches; all have the whole result, with
  /// the same bits as one alone. Null: alone.
  Ranks* ranks = nullptr;
};

/// Evaluates the model on one epoch of the loader, in the type of the model's weights. A diffusion model gets
/// the same noise at the same times each time it is evaluated in the same batches: each micro-batch draws
/// from a stream of its own. Returns nothing if go_on ended it.
std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options);

/// A loader over all of `split` in order, without augmentation. A split with masks or latents is delivered to
/// the CPU. Where the ranks of `options` evaluate it, it makes the pictures of this one's share alone.
std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch, const DeliveryOptions& delivery = {},
                                          const EvaluateOptions& options = {});

}  // namespace tessera
