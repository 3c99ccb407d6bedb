// Runs whose batches are made where they are trained on.
#include "apps/training/step.h"
#include "engine/check/gradient_check.h"
#include "tests/cuda.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

const Json regime{{"model", small_vit},
                  {"augment",
                   {{"autoaugment", "cifar10"},
                    {"erasing", {{"probability", 0.5}, {"fill", "noise"}}},
                    {"mixup", 0.8},
                    {"cutmix", 1.0},
                    {"mix_probability", 0.5}}},
                  {"clip", 1.0}};

SmallRun run_of(const Json& changes = Json::object()) {
  Json document = regime;
  document.merge_patch(changes);
  return small_run(document);
}

// Weights, moments and position at the end of a run, as its files have them.
std::string bytes_after(const std::filesystem::path& path, const SmallRun& run, const Computing& computing,
                        const StopAfter& stop = {}) {
  train_in(path, run, stop, computing);
  return bytes_of(path / "last.safetensors") + bytes_of(path / "state.safetensors");
}

LoaderOptions loader_options(const SmallRun& run, Device device, DType dtype) {
  LoaderOptions options{.sampler = {.batch = run.config.batch}, .mix = run.config.augment.mix, .seed = 8};
  options.delivery = {.device = device, .dtype = dtype, .classes = run.dataset.classes()};
  return options;
}

// The losses and the last step's weights of an epoch whose batches are delivered to `device`.
std::vector<double> learned(const SmallRun& run, const StepOptions& how, Device device) {
  const DType dtype = device == Device::cuda && how.precision == Precision::bf16 ? DType::bf16 : DType::f32;
  Loader loader(run.dataset.train, Pipeline::training(run.dataset, run.config.augment),
                loader_options(run, device, dtype));
  Model model = build(run.config.model, {.seed = 3, .device = Device::cuda});
  const auto optimizer = make_optimizer(run.config.optimizer, model.parameters);
  TrainStep step(model, *optimizer, how);
  Pass pass{.training = true, .random = Random(5)};
  std::vector<double> numbers;
  const auto take = [&](const Batch& batch) {
    return step({batch.images, batch.labels, batch.other_labels, batch.lam, {}, {}, batch.shares}, 0.01,
                pass);
  };
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start(epoch);
    while (const Batch* batch = loader.next()) {
      const StepResult result = take(*batch);
      numbers.insert(numbers.end(), {result.loss, static_cast<double>(result.correct), result.gradient_norm});
    }
  }
  for (const Parameter& p : model.parameters)
    for (const double value : p.value.values()) numbers.push_back(value);
  model.parameters.begin()->value.fill(std::nan(""));
  loader.start(2);
  const auto trouble = take(*loader.next()).trouble;
  REQUIRE(trouble);
  CHECK(trouble->find("a weight was bad before the step") != std::string::npos);
  return numbers;
}

}  // namespace

TEST_CASE("cuda: a step learns the same from the host's batches and from the device's") {
  if (!cuda_here()) return;
  const SmallRun run = run_of();
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const bool graph : {true, false}) {
      CAPTURE(graph);
      StepOptions how{.clip = 1, .smoothing = 0.1, .graph = graph, .precision = precision, .shares = true};
      CHECK(learned(run, how, Device::cuda) == learned(run, how, Device::cpu));
    }
}

TEST_CASE(
    "cuda: a run has the same bits, its data kept or streamed, replayed or launched, broken off or not") {
  if (!cuda_here()) return;
  const TemporaryFolder folder;
  const SmallRun run = run_of();
  const Computing computing{.device = Device::cuda};
  const std::string kept = bytes_after(folder / "kept", run, computing);
  CHECK(Trainer(run.config, run.dataset, computing).data_on_device());
  const SmallRun streaming = run_of({{"data", {{"on_device", false}}}});
  CHECK_FALSE(Trainer(streaming.config, streaming.dataset, computing).data_on_device());
  CHECK(bytes_after(folder / "streamed", streaming, computing) == kept);
  CHECK(bytes_after(folder / "launched", run, {.device = Device::cuda, .graph = false}) == kept);
  train_in(folder / "broken", run, {.steps = 4}, computing);
  CHECK(bytes_after(folder / "broken", run, computing) == kept);
}

TEST_CASE("cuda: TensorBoard is shown the pictures that a device made") {
  if (!cuda_here()) return;
  const TemporaryFolder folder;
  const SmallRun run = run_of({{"tensorboard", true}});
  train_in(folder / "run", run, {.steps = 1}, {.device = Device::cuda, .precision = Precision::bf16});
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    found = found || bytes_of(entry.path()).find("train/pictures") != std::string::npos;
  CHECK(found);
}
