#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/training/batch_norm.h"
#include "apps/training/config.h"
#include "apps/training/gradient_sum.h"
#include "apps/training/layer_figures.h"
#include "apps/training/precision.h"
#include "apps/training/ranks.h"
#include "apps/training/recorded_step.h"
#include "apps/training/step_batch.h"
#include "apps/training/step_inputs.h"
#include "engine/core/device_peers.h"
#include "engine/core/read_back.h"
#include "engine/nn/pass.h"
#include "engine/optim/ema.h"
#include "engine/optim/mixed.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/statistics.h"
#include "models/model.h"

namespace tessera {

/// The optimizer of a config for the trainable ones of `parameters`. Fails for a group that matches none.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters);

class LayerWatch;
class NumberWatch;

struct StepOptions {
  /// Images that go forward and backward at once; 0: the whole batch. Not given: `cpu_micro_batch` on a CPU,
  /// the whole batch on a GPU, and the whole batch where batch norms take its statistics.
  std::optional<int64_t> micro_batch = std::nullopt;
  double clip = 0;       ///< largest Euclidean norm of the gradient of all parameters together; 0: any
  double smoothing = 0;  ///< of the labels
  bool graph = true;     ///< on a GPU: record a step once, then replay it
  Precision precision = Precision::f32;
  Ema* average = nullptr;  ///< of the weights; updated after each step that is taken; must outlive the steps
  /// On a GPU: targets are soft even for batches that are not mixed, as a recorded step needs where some are.
  /// Always so for a model with token targets.
  bool shares = false;
  BatchNormStatistics batch_norm = BatchNormStatistics::batch;
  /// Compute the step together, each rank its share_of() the micro-batches. All are given the same options,
  /// rates and passes; a rank reads the images of its own share alone. A graph is recorded where NCCL joins
  /// their GPUs, and for no model with batch norms. Null: alone.
  Ranks* ranks = nullptr;
};

/// A batch goes through a CPU in micro-batches of this size, whose activations stay in its caches.
inline constexpr int64_t cpu_micro_batch = 64;

/// A gradient whose square is no float any more would make AdamW's second moment infinite for good.
inline constexpr double largest_gradient_norm = 1e18;

/// Fails where the options ask what steps of this model on batches of `batch` images cannot do: batch norms
/// with statistics of the whole batch beside smaller micro-batches, statistics of micro-batches for a model
/// without batch norms, tf32 on a CPU.
void check_step_options(const Model& model, const StepOptions& options, int64_t batch);

struct StepResult {
  double loss = 0;  ///< mean over the batch
  /// Images whose largest logit is that of their own label, also where another image is mixed in; 0 for a
  /// model that does not classify images.
  int64_t correct = 0;
  double gradient_norm = 0;  ///< of all parameters together, before clipping
  /// Why the step was left out: which number was not finite, and the first tensor that was not, with its op.
  std::optional<std::string> trouble;
  std::vector<LayerFigures> layers{};  ///< of a watched step that was taken
  std::string note{};                  ///< anything else that the user should know, mostly nothing
};

/// One step of training, on any device and in any precision: forward, loss and backward of each micro-batch,
/// whose gradients add up in f32 (see GradientSum); clipping; the optimizer's step; the average of the
/// weights. A step whose loss or gradient is not finite, or whose gradient is larger than
/// largest_gradient_norm, changes no weight, moment or statistic.
///
/// In bf16 a copy of the model computes (Micikevicius et al., 2018): the gradients of each micro-batch are
/// bf16, and are widened and added to f32 ones; those of a single micro-batch are read as they are. Batch
/// norms take their statistics as the options say, and move their running statistics by each micro-batch in
/// turn.
///
/// Where there are several micro-batches, the step draws one number from the pass, and each micro-batch draws
/// from a stream of its own that is split off by this number and the micro-batch's. So results do not depend
/// on the ranks.
///
/// No number is read before the whole step is queued. On a GPU a step is recorded as a graph once two steps
/// of a shape have been launched, and replayed then; that changes no bit of the results.
///
/// Model and optimizer must outlive the steps.
class TrainStep {
 public:
  TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options);
  ~TrainStep();

  StepResult operator()(const StepBatch& batch, double lr, Pass& pass);

  /// The same in two halves, so that a GPU begins the next step while the host waits for the result of this
  /// one: at most most_under_way() steps may be started and not finished, one on a CPU and two on a GPU.
  /// Results and weights are those of one step after another. The batch's tensors on the CPU must keep their
  /// numbers until its step is finished; those on a GPU may be written anew as soon as start() returns.
  /// A `watched` step tells its layers' figures; it is launched op by op, which changes no bit.
  void start(const StepBatch& batch, double lr, Pass& pass, bool watched = false);
  StepResult finish();
  int most_under_way() const { return device_ == Device::cpu ? 1 : 2; }

  int64_t micro_batch() const {
    return micro_batch_;
  }  ///< images that go through at once; 0: the whole batch

  /// The images of a batch of so many that this rank computes.
  Share own_images(int64_t images) const;

  /// The model to evaluate, with the weights and statistics as they are now: the model itself, or in bf16 the
  /// copy that computes, which serves until the next step.
  const Model& evaluation_model() const;

 private:
  struct Started {
    StepBatch batch;
    double lr;
    Pass before;  ///< the pass as it was before the step's draws, to repeat the step
    bool watched = false;
    std::shared_ptr<const LayerWatch> watch = nullptr;
  };

  void begin(const StepBatch& batch, Started step, Pass& pass);
  void cut(int64_t images);

  /// Calls f(part, pass) for this rank's micro-batches, each with the pass that it draws from.
  void each_own_part(const std::vector<MicroBatch>& parts, Pass& pass,
                     const std::function<void(const MicroBatch&, Pass&)>& f) const;

  /// A step's work, which a graph records. Returns the keys that it has drawn if it is recorded.
  std::vector<uint64_t> compute(Pass& pass, bool recording);
  void compute_part(const MicroBatch& part, Pass& pass);
  void hand_over_gradients() const;
  std::unique_ptr<LeafArrivals> send_early(int64_t part, const Tape& tape);
  bool can_record() const;
  void share_results();
  void gather_on_gpus(const Tensor& numbers);
  void update(double lr);

  bool record(double lr, const Pass& pass);  ///< false, and a note, where it cannot be done
  void replay(double lr, Pass& pass);

  StepResult read_result();
  void forget_steps_after_trouble();
  void explain(const Started& step, StepResult& result) const;
  Tensor own_pixels(const StepBatch& batch) const;
  std::optional<std::string> find_cause(const StepBatch& batch, Pass pass) const;

  const Model& computing_model() const { return narrow_ ? *narrow_ : model_; }

  Model& model_;
  Optimizer& optimizer_;
  StepOptions options_;
  Device device_;
  Ranks& ranks_;
  std::unique_ptr<DevicePeers> peers_;  ///< the GPUs of the ranks; null where they are not joined
  GradientSum gradients_;
  std::optional<Model> narrow_;           ///< the model in bf16, which computes then
  std::optional<MixedWeights> mixed_;     ///< pairs of its weights and the model's
  std::vector<Tensor> narrow_leaves_;     ///< its weights, in the order of the pairs
  std::optional<Statistics> statistics_;  ///< of batch norms, kept to take back a step that is left out
  std::optional<RunningStatistics> running_;
  StepInputs inputs_;

  int64_t micro_batch_;             ///< size of the micro-batches; 0: the whole batch
  std::vector<MicroBatch> parts_;   ///< of the batch of the step begun last
  Tensor losses_, correct_, norm_;  ///< [parts], [parts] i64, and [3] f64 of clip_on_device; on the device
  bool counts_ = false;             ///< whether the logits are of classes of images
  std::vector<uint64_t> keys_;      ///< random keys that each micro-batch draws
  int64_t launched_ = 0;            ///< steps with the inputs where they are now
  std::unique_ptr<RecordedStep> recorded_;
  std::shared_ptr<LayerWatch> watch_;  ///< of the step that computes now; null where it is not watched
  std::string note_;                   ///< for the next result

  std::array<std::unique_ptr<ReadBack>, 2> reads_;  ///< of step i in i % most_under_way()
  int64_t begun_ = 0, finished_ = 0;
  std::deque<Started> started_;
};

}  // namespace tessera
