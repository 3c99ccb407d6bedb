#include "apps/training/evaluation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/training/step_batch.h"
#include "engine/core/error.h"
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

// scores [B, K, H, W], masks [B, H, W]
std::vector<Judgement> judge_pixels(const Tensor& scores, const Tensor& masks) {
  const Tensor predicted = largest_class(scores).to(Device::cpu);
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

// Counts the images and returns a judgement of each, numbered from 0, if they are wanted.
std::vector<Judgement> add_images(Evaluation& result, const Model& model, const Tensor& images,
                                  const Tensor& targets, Pass& pass, bool wanted) {
  if (result.task == Task::diffuse) {
    const TensorMap batch{{"input", images}, {"target", targets}};
    result.add_loss(model.training_loss(batch, {}, pass).loss.item(), images.dim(0));
    return {};
  }
  const Tensor logits = model.logits(images, pass);
  if (result.task == Task::segment) {
    result.add_pixels(logits, targets);
    return wanted ? judge_pixels(logits, targets) : std::vector<Judgement>();
  }
  return result.add(logits.to(Device::cpu).to(DType::f32), targets);
}

}  // namespace

double Evaluation::score() const {
  return task == Task::diffuse ? -loss() : task == Task::segment ? pixels->scores().mean_iou : top1();
}

void Evaluation::add_pixels(const Tensor& scores, const Tensor& masks) {
  if (!pixels) pixels.emplace(classes = scores.dim(1));
  const Tensor loss = cross_entropy(permute(scores, {0, 2, 3, 1}), masks.to(scores.device()),
                                    {.smoothing = 0, .rows = 0, .ignore = no_class});
  pixels->add(largest_class(scores), masks);
  add_loss(loss.item(), scores.dim(0));
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
  classes = logits.dim(1);
  confusion.resize(static_cast<size_t>(classes * classes));
  std::vector<Judgement> judgements = judge_labels(logits, labels);
  for (const Judgement& j : judgements) {
    ++images;
    correct += j.rank == 0;
    correct5 += j.rank < 5;
    loss_sum += j.loss;
    ++confusion[static_cast<size_t>(j.label * classes + j.predicted)];
  }
  return judgements;
}

const Tensor& targets_of(const Batch& batch, Task task) {
  return task == Task::segment ? batch.masks : batch.labels;
}

std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options) {
  Evaluation result;
  result.task = task_of(model.config);
  const DType type = trainable(model.parameters).front().second.dtype();
  Pass pass;
  loader.start(0);
  while (!options.go_on || options.go_on(result.images)) {
    const Batch* batch = loader.next();
    if (!batch) return result;
    const int64_t usual = options.device == Device::cpu ? 32 : 0;
    for (const auto [index, first, count] :
         cut_batch(batch->images.dim(0), options.micro_batch.value_or(usual))) {
      Tensor targets = targets_of(*batch, result.task).rows(first, count);
      if (result.task == Task::classify) targets = targets.to(Device::cpu);
      const Tensor pictures = batch->images.rows(first, count).to(options.device).to(type);
      std::vector<Judgement> judged =
          add_images(result, model, pictures, targets, pass, options.judgements != nullptr);
      if (!options.judgements) continue;
      for (Judgement& each : judged) {
        each.picture = batch->indices[static_cast<size_t>(first + each.picture)];
        options.judgements->push_back(each);
      }
    }
  }
  return std::nullopt;
}

std::unique_ptr<Loader> evaluation_loader(std::shared_ptr<const Split> split, const Pipeline& pipeline,
                                          int64_t batch, const DeliveryOptions& delivery) {
  LoaderOptions options;
  if (!split->has_masks()) options.delivery = delivery;
  options.sampler = {.batch = batch, .shuffle = false, .drop_last = false};
  return std::make_unique<Loader>(std::move(split), pipeline, options);
}

}  // namespace tessera
