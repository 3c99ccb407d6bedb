#include "apps/training/train_state.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera {

void Position::add(const StepResult& result, int64_t step_images, double step_lr) {
  ++step;
  lr = step_lr;
  if (result.trouble) {
    ++skipped;
    ++skipped_in_a_row;
    return;
  }
  skipped_in_a_row = 0;
  images += step_images;
  correct += result.correct;
  loss_sum += result.loss;
  norm_sum += result.gradient_norm;
}

void Position::next_epoch() {
  ++epoch;
  step = images = correct = skipped = 0;
  loss_sum = norm_sum = 0;
}

Json to_json(const Position& p) {
  return {{"epoch", p.epoch},
          {"step", p.step},
          {"images", p.images},
          {"correct", p.correct},
          {"loss_sum", p.loss_sum},
          {"norm_sum", p.norm_sum},
          {"skipped", p.skipped},
          {"skipped_in_a_row", p.skipped_in_a_row},
          {"lr", p.lr},
          {"best_top1", p.best_score},
          {"last_top1", p.last_score},
          {"best_epoch", p.best_epoch},
          {"watch_bytes", p.watch.bytes},
          {"watch_sum", p.watch.sum},
          {"random_seed", p.random.seed},
          {"random_stream", p.random.stream},
          {"random_position", p.random.position}};
}

Position read_position(const Json& json, const std::string& where) {
  Position p;
  const Range count = Range::at_least(0);
  Fields f(json, where);
  p.epoch = f.get<int64_t>("epoch", count);
  p.step = f.get<int64_t>("step", count);
  p.images = f.get<int64_t>("images", count);
  p.correct = f.get<int64_t>("correct", count);
  p.loss_sum = f.get<double>("loss_sum");
  p.norm_sum = f.get<double>("norm_sum");
  p.skipped = f.get("skipped", p.skipped, count);
  p.skipped_in_a_row = f.get("skipped_in_a_row", p.skipped_in_a_row, count);
  p.lr = f.get<double>("lr");
  p.best_score = f.get<double>("best_top1");
  // JSON has no NaN, which an evaluation may come to: it is written as null.
  const Json* last = f.find("last_top1");
  p.last_score = last && last->is_null() ? std::nan("") : f.get<double>("last_top1");
  p.best_epoch = f.get<int64_t>("best_epoch", count);
  p.watch = {f.get("watch_bytes", p.watch.bytes, count), f.get("watch_sum", p.watch.sum)};
  const auto word = [&](const char* key) {
    const Json* value = f.find(key);
    if (!value || !value->is_number_unsigned()) f.fail_at(key, "is no unsigned integer");
    return value->get<uint64_t>();
  };
  p.random = {word("random_seed"), word("random_stream"), word("random_position")};
  f.done();
  return p;
}

void append_with_prefix(NamedTensors& to, const std::string& prefix, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) to.emplace_back(prefix + name, tensor);
}

NamedTensors with_prefix(const NamedTensors& all, const std::string& prefix) {
  NamedTensors found;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), tensor);
  return found;
}

}  // namespace tessera
