#include "apps/training/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/training/ranks.h"
#include "apps/training/step_batch.h"
#include "engine/core/error.h"
#include "engine/core/frozen_weights.h"
#include "engine/ops/loss.h"
#include "engine/ops/shape.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

namespace {

// log sum_k exp(x_k)
double log_sum_of(const float* x, int64_t classes) {
  const double largest = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[k] - largest);
  return largest + std::log(sum);
}

// The number of classes ranked before `label`: with a larger logit, or the same logit and a smaller number. A
// NaN logit ranks last, as it is no answer.
int64_t rank_of(const float* x, int64_t classes, int64_t label) {
  if (std::isnan(x[label])) return std::numeric_limits<int64_t>::max();
  int64_t rank = 0;
  for (int64_t k = 0; k < classes; ++k) rank += x[k] > x[label] || (x[k] == x[label] && k < label);
  return rank;
}

int64_t best_class(const float* x, int64_t classes) { return std::max_element(x, x + classes) - x; }

// logits [B, K] f32, labels [B]
std::vector<Judgement> judge_labels(const Tensor& logits, const Tensor& labels) {
  std::vector<Judgement> judgements;
  const int64_t classes = logits.dim(1);
  for (int64_t i = 0; i < logits.dim(0); ++i) {
    const float* x = logits.data<float>() + i * classes;
    const int64_t label = labels.data<int64_t>()[i], predicted = best_class(x, classes);
    const double log_sum = log_sum_of(x, classes);
    judgements.push_back({.picture = i,
                          .label = label,
                          .predicted = predicted,
                          .rank = rank_of(x, classes, label),
                          .confidence = std::exp(x[predicted] - log_sum),
                          .right = predicted == label ? 1.0 : 0.0,
                          .loss = log_sum - x[label]});
  }
  return judgements;
}

// predicted classes and masks [B, H, W]
std::vector<Judgement> judge_pixels(const Tensor& predicted, const Tensor& masks) {
  std::vector<Judgement> judgements;
  const int64_t pixels = masks.dim(1) * masks.dim(2);
  for (int64_t i = 0; i < masks.dim(0); ++i) {
    const int64_t *is = masks.data<int64_t>() + i * pixels, *said = predicted.data<int64_t>() + i * pixels;
    int64_t counted = 0, right = 0;
    for (int64_t k = 0; k < pixels; ++k) {
      counted += is[k] != no_class;
      right += is[k] == said[k];
    }
    const double share = counted > 0 ? static_cast<double>(right) / static_cast<double>(counted) : 1;
    judgements.push_back({.picture = i, .right = share});
  }
  return judgements;
}

int64_t micro_batch_of(const EvaluateOptions& options) {
  return options.micro_batch.value_or(options.device == Device::cpu ? 32 : 0);
}

// The micro-batches that a rank evaluates; a single one is evaluated by every rank.
Share own_parts(int64_t parts, int rank, int size) {
  return parts == 1 ? Share{0, 1} : share_of(parts, rank, size);
}

// The images of some consecutive micro-batches.
Share images_of(const std::vector<MicroBatch>& parts, Share share) {
  if (share.count == 0) return {};
  const MicroBatch &first = parts[static_cast<size_t>(share.first)],
                   &last = parts[static_cast<size_t>(share.end() - 1)];
  return {first.first, last.first + last.count - first.first};
}

// What a model answers to the pictures of a batch.
struct Answers {
  int64_t classes = 0;
  std::vector<double> losses;         // of each micro-batch, of a segmenter or a diffusion model
  std::vector<Judgement> judgements;  // of each picture, of a classifier
  Tensor predicted;                   // of a segmenter. [B, H, W] i64
};

// `number` is unlike any other micro-batch's, and names its stream of draws.
void answer(Answers& answers, Task task, const Model& model, const Tensor& images, const Tensor& targets,
            const MicroBatch& part, int64_t number) {
  Pass pass{.random = Random(0).split(static_cast<uint64_t>(number)), .answer_only = true};
  if (task == Task::diffuse) {
    const TensorMap batch{{"input", images}, {"target", targets}};
    answers.losses[static_cast<size_t>(part.index)] = model.training_loss(batch, {}, pass).loss.item();
    return;
  }
  const Tensor logits = model.logits(images, pass);
  answers.classes = logits.dim(1);
  if (task == Task::classify) {
    for (Judgement& each : judge_labels(logits.to(Device::cpu).to(DType::f32), targets.to(Device::cpu))) {
      each.picture += part.first;
      answers.judgements[static_cast<size_t>(each.picture)] = each;
    }
    return;
  }
  const Tensor loss = cross_entropy(permute(logits, {0, 2, 3, 1}), targets.to(logits.device()),
                                    {.smoothing = 0, .rows = 0, .ignore = no_class});
  answers.losses[static_cast<size_t>(part.index)] = loss.item();
  answers.predicted.rows(part.first, part.count).copy_from(largest_class(logits).to(Device::cpu));
}

void share_answers(Ranks& ranks, Answers& answers, const std::vector<MicroBatch>& parts) {
  if (ranks.alone() || parts.size() == 1) return;
  answers.classes = largest_of(ranks, answers.classes);
  std::vector<Share> shares, images;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    shares.push_back(own_parts(std::ssize(parts), rank, ranks.size()));
    images.push_back(images_of(parts, shares.back()));
  }
  if (!answers.losses.empty()) gather(ranks, answers.losses.data(), shares, sizeof(double));
  if (!answers.judgements.empty()) gather(ranks, answers.judgements.data(), images, sizeof(Judgement));
  if (answers.predicted.defined())
    gather(ranks, answers.predicted.raw(), images, answers.predicted.rows(0, 1).bytes());
}

// The answers to a batch: this rank's own, and those of the others.
Answers answers_to(const Batch& batch, const Evaluation& before, const Model& model,
                   const EvaluateOptions& options, const std::vector<MicroBatch>& parts) {
  const Task task = before.task;
  Ranks& ranks = options.ranks ? *options.ranks : one_rank();
  const DType type = trainable(model.parameters).front().second.dtype();
  Answers answers;
  if (task == Task::classify)
    answers.judgements.resize(static_cast<size_t>(batch.images.dim(0)));
  else
    answers.losses.resize(parts.size());
  const Tensor& targets = targets_of(batch, task);
  if (task == Task::segment) answers.predicted = Tensor::empty(targets.shape(), DType::i64);
  const Share own = own_parts(std::ssize(parts), ranks.rank(), ranks.size());
  for (int64_t i = own.first; i < own.end(); ++i) {
    const MicroBatch& part = parts[static_cast<size_t>(i)];
    answer(answers, task, model, batch.images.rows(part.first, part.count).to(options.device).to(type),
           targets.rows(part.first, part.count), part, before.images + part.first);
  }
  share_answers(ranks, answers, parts);
  return answers;
}

// Counts the answers in the order of the pictures.
void count(Evaluation& result, Answers& answers, const Tensor& targets, const std::vector<MicroBatch>& parts,
           bool judges) {
  for (const Judgement& each : answers.judgements) result.add(each, answers.classes);
  for (const MicroBatch& part : parts) {
    if (result.task == Task::classify) break;
    if (result.task == Task::segment)
      result.add_pixels(answers.predicted.rows(part.first, part.count), targets.rows(part.first, part.count),
                        answers.classes);
    result.add_loss(answers.losses[static_cast<size_t>(part.index)], part.count);
  }
  if (result.task == Task::segment && judges) answers.judgements = judge_pixels(answers.predicted, targets);
}

}  // namespace

double Evaluation::score() const {
  return task == Task::diffuse ? -loss() : task == Task::segment ? pixels->scores().mean_iou : top1();
}

void Evaluation::add_pixels(const Tensor& predicted, const Tensor& masks, int64_t of_classes) {
  if (!pixels) pixels.emplace(classes = of_classes);
  pixels->add(predicted, masks);
}

void Evaluation::add_loss(double mean, int64_t count) {
  images += count;
  loss_sum += mean * static_cast<double>(count);
}

std::string Evaluation::csv() const {
  if (task == Task::diffuse) return fmt::format("{},,", loss());
  if (task == Task::segment) {
    const auto scores = pixels->scores();
    return fmt::format("{},,,{},{}", loss(), scores.mean_iou, scores.pixel_accuracy);
  }
  return fmt::format("{},{},{}", loss(), top1(), top5());
}

Json Evaluation::json() const {
  Json numbers{{"loss", loss()}};
  if (task == Task::classify) numbers.update({{"top1", top1()}, {"top5", top5()}});
  if (task == Task::segment) {
    const auto scores = pixels->scores();
    numbers.update({{"mean_iou", scores.mean_iou}, {"pixel_accuracy", scores.pixel_accuracy}});
  }
  return numbers;
}

std::string Evaluation::text() const {
  const std::string text = fmt::format("loss {:.4f}", loss());
  if (task == Task::segment) {
    const auto scores = pixels->scores();
    return text + fmt::format(" mean IoU {:.2f} % pixels {:.2f} %", 100 * scores.mean_iou,
                              100 * scores.pixel_accuracy);
  }
  return task == Task::diffuse ? text : text + fmt::format(" top-1 {:.2f} %", 100 * top1());
}

std::vector<Judgement> Evaluation::add(const Tensor& logits, const Tensor& labels) {
  std::vector<Judgement> judgements = judge_labels(logits, labels);
  for (const Judgement& j : judgements) add(j, logits.dim(1));
  return judgements;
}

void Evaluation::add(const Judgement& judgement, int64_t of_classes) {
  classes = of_classes;
  confusion.resize(static_cast<size_t>(classes * classes));
  ++images;
  correct += judgement.rank == 0;
  correct5 += judgement.rank < 5;
  loss_sum += judgement.loss;
  ++confusion[static_cast<size_t>(judgement.label * classes + judgement.predicted)];
}

const Tensor& targets_of(const Batch& batch, Task task) {
  return task == Task::segment ? batch.masks : batch.labels;
}

std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options) {
  Evaluation result;
  result.task = task_of(model.config);
  const FrozenWeights frozen(model.parameters.state());
  loader.start(0);
  while (!options.go_on || options.go_on(result.images)) {
    const Batch* batch = loader.next();
    if (!batch) return result;
    const std::vector<MicroBatch> parts = cut_batch(batch->images.dim(0), micro_batch_of(options));
    Answers answers = answers_to(*batch, result, model, options, parts);
    count(result, answers, targets_of(*batch, result.task), parts, options.judgements != nullptr);
    if (!options.judgements) continue;
    for (Judgement& each : answers.judgements) {
      each.picture = batch->indices[static_cast<size_t>(each.picture)];
      options.judgements->push_back(each);
    }
  }
  return std::nullopt;
}

std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch, const DeliveryOptions& delivery,
                                          const EvaluateOptions& evaluated) {
  LoaderOptions options;
  const bool has_masks = split->has_masks();
  if (!has_masks && !split->has_latents()) options.delivery = delivery;
  if (evaluated.ranks && !has_masks)  // masks are counted by every rank
    options.own = [&ranks = *evaluated.ranks, micro = micro_batch_of(evaluated)](int64_t images) {
      const std::vector<MicroBatch> parts = cut_batch(images, micro);
      const Share own = images_of(parts, own_parts(std::ssize(parts), ranks.rank(), ranks.size()));
      return std::pair(own.first, own.end());
    };
  options.sampler = {.batch = batch, .shuffle = false, .drop_last = false};
  return std::make_unique<Loader>(std::move(split), pipeline, options);
}

}  // namespace tessera
