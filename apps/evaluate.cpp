#include "apps/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/ops/loss.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

// -log softmax(x)_label
double cross_entropy_of(const float* x, int64_t classes, int64_t label) {
  const double largest = *std::max_element(x, x + classes);
  double sum = 0;
  for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[k] - largest);
  return largest + std::log(sum) - x[label];
}

// How many classes come before `label`: a larger logit, or the same and a smaller number. All do where the
// logit is NaN, which is no answer.
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
    judgements.push_back({.picture = i,
                          .label = label,
                          .predicted = predicted,
                          .confidence = std::exp(-cross_entropy_of(x, classes, predicted)),
                          .right = predicted == label ? 1.0 : 0.0,
                          .loss = cross_entropy_of(x, classes, label)});
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

// Adds the images and returns what was made of each: of a classifier, on the CPU in f32, as its targets are.
Tensor add_images(Evaluation& result, const Model& model, const Tensor& images, const Tensor& targets,
                  Pass& pass) {
  if (result.task == Task::diffuse) {
    const TensorMap batch{{"input", images}, {"target", targets}};
    result.add_loss(model.training_loss(batch, {}, pass).loss.item(), images.dim(0));
    return {};
  }
  Tensor logits = model.logits(images, pass);
  if (result.task == Task::segment) {
    result.add_pixels(logits, targets);
    return logits;
  }
  logits = logits.to(Device::cpu).to(DType::f32);
  result.add(logits, targets);
  return logits;
}

// `first` is where the part of the batch begins that was judged.
void keep_judgements(const EvaluateOptions& options, Task task, const Tensor& logits, const Tensor& targets,
                     const Batch& batch, int64_t first) {
  if (!options.judgements || !logits.defined()) return;
  for (Judgement& each :
       task == Task::segment ? judge_pixels(logits, targets) : judge_labels(logits, targets)) {
    each.picture = batch.indices[static_cast<size_t>(first + each.picture)];
    options.judgements->push_back(each);
  }
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

void Evaluation::add(const Tensor& logits, const Tensor& labels) {
  classes = logits.dim(1);
  confusion.resize(static_cast<size_t>(classes * classes));
  const int64_t* label = labels.data<int64_t>();
  for (int64_t i = 0; i < logits.dim(0); ++i) {
    const float* x = logits.data<float>() + i * classes;
    const int64_t rank = rank_of(x, classes, label[i]), predicted = best_class(x, classes);
    ++images;
    correct += rank == 0;
    correct5 += rank < 5;
    loss_sum += cross_entropy_of(x, classes, label[i]);
    ++confusion[static_cast<size_t>(label[i] * classes + predicted)];
  }
}

const Tensor& targets_of(const Batch& batch, Task task) {
  return task == Task::segment ? batch.masks : batch.labels;
}

std::optional<Evaluation> evaluate(const Model& model, Loader& loader, const EvaluateOptions& options) {
  Evaluation result;
  result.task = task_of(model.config);
  Pass pass;
  loader.start(0);
  while (!options.go_on || options.go_on(result.images)) {
    const Batch* batch = loader.next();
    if (!batch) return result;
    const int64_t images = batch->images.dim(0),
                  step =
                      options.micro_batch > 0 && options.device == Device::cpu ? options.micro_batch : images;
    for (int64_t first = 0; first < images; first += step) {
      const int64_t count = std::min(step, images - first);
      Tensor targets = targets_of(*batch, result.task).rows(first, count);
      if (result.task == Task::classify) targets = targets.to(Device::cpu);
      const Tensor logits =
          add_images(result, model, batch->images.rows(first, count).to(options.device), targets, pass);
      keep_judgements(options, result.task, logits, targets, *batch, first);
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
