// Trains a preset on pictures of one's own in a loop of one's own. Ends with 1 unless the loss falls.

#include <tessera/training.h>

#include <cstdio>

#include "pictures.h"

using namespace tessera;

int main() {
  const Dataset data = memory_dataset({"coarse", "fine"}, stripes(256, 1), stripes(64, 2));
  const TrainConfig config = train_config("vit", data);
  Model model = build(config.model, {.seed = 1});
  const auto optimizer = make_optimizer(config.optimizer, model.parameters);
  TrainStep step(model, *optimizer, {.clip = 1});
  Loader loader(data.train, Pipeline(data), {.sampler = {.batch = 32}});
  Pass pass{.training = true, .random = Random(1)};
  double first = 0, last = 0;  // losses, summed over an epoch
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    last = 0;
    loader.start(epoch);
    while (const Batch* batch = loader.next()) last += step({batch->images, batch->labels}, 1e-3, pass).loss;
    if (epoch == 0) first = last;
  }
  write_checkpoint("own.safetensors", model.parameters.state(), config.model, DataFacts(config.data, data),
                   {});
  const Evaluation after = evaluate(read_checkpoint("own.safetensors"), data);
  std::printf("top-1 %.2f %%  top-5 %.2f %%  loss %.4f\n", 100 * after.top1(), 100 * after.top5(),
              after.loss());
  return last < first ? 0 : 1;
}
