#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/step.h"
#include "engine/core/read_back.h"
#include "engine/core/replay.h"
#include "engine/optim/mixed.h"
#include "engine/optim/statistics.h"

namespace tessera {

// Training steps whose numbers stay on the device: the whole batch at once, and no wait between two of them.
// Loss, gradient norm and correct answers come back when they are asked for. From the third step on batches
// of one shape are replays of a graph.
class DeviceStep {
 public:
  static constexpr int most_under_way = 2;

  DeviceStep(Model& model, Optimizer& optimizer, const StepOptions& options);

  // Begins a step on a batch: its work is queued when this returns. At most two are under way.
  void start(const StepBatch& batch, double lr, Pass& pass);
  // Waits for the first of those under way. Where it is left out, `trouble` is empty text, and the one begun
  // after it, if any, has changed nothing and is forgotten: it is to be started again.
  StepResult finish();

  // What computes, with the model's weights and statistics as they are now: a copy in bf16, or the model.
  const Model& computing() const;

 private:
  void compute_in_bf16();
  void follow_statistics();
  void take(const StepBatch& batch, Pass& pass);
  void begin(const StepBatch& batch, bool there, bool mixed);  // with batches of another kind
  void draw(const StepBatch& batch, Pass& pass);               // likewise, what the model draws on the host
  void compute(Pass& pass);                                    // forward, loss, backward
  void step(double lr);                                        // clip, the optimizer's step
  void follow();                                               // the statistics and the average, after it
  bool record(double lr, const Pass& pass);                    // false, and a note, where it cannot be done
  void find_draws(const Pass& before, const Pass& after);      // by which the graph is given its keys
  void replay(double lr, Pass& pass);
  void leave_out();  // after a step that was

  Model& model_;
  std::optional<Model> narrow_;  // the same in bf16, which then computes
  std::optional<MixedWeights> mixed_;
  std::optional<Statistics> statistics_;  // of batch norms
  Optimizer& optimizer_;
  StepOptions options_;
  Device device_;
  Tensor images_, labels_;
  Tensor soft_;      // [B, K], the targets where batches are mixed: lam is another each time; or a teacher's
  Tensor patches_;   // [B, N, K], then, of the tokens
  TensorMap drawn_;  // by the model on the host
  Tensor loss_, correct_, norm_;  // [1] of the model's type; [1] i64; [3] f64, see clip_on_device
  bool counts_ = false;           // whether the model gives logits of classes
  int64_t steps_ = 0;             // of this shape
  std::unique_ptr<Replay> graph_;
  uint64_t draws_ = 0;            // keys that a step draws
  std::vector<size_t> drawn_as_;  // for each of the graph's keys, which draw it is
  std::array<std::unique_ptr<ReadBack>, most_under_way> reads_;  // of step i in i % most_under_way
  int64_t started_ = 0, finished_ = 0;
  std::string note_;  // for the next result
};

}  // namespace tessera
