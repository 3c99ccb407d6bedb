// Trains a preset on pictures of one's own, breaks off, resumes and evaluates. Ends with 1 unless the loss
// falls.

#include <tessera/training.h>

#include <cstdio>

#include "pictures.h"

using namespace tessera;

int main() {
  const Dataset data = memory_dataset({"coarse", "fine"}, stripes(256, 1), stripes(64, 2));
  const TrainConfig config = train_config("vit", data, {{"epochs", 3}, {"batch", 32}});
  if (train(config, data, "run", {.steps = 12}) != Ending::stopped) return 1;  // in the second of 3 epochs
  const double before = evaluate(read_checkpoint("run"), data).loss();
  if (train(config, data, "run") != Ending::finished) return 1;  // goes on where it stopped
  const Evaluation after = evaluate(read_checkpoint("run"), data);
  std::printf("loss %.4f, then top-1 %.2f %%  top-5 %.2f %%  loss %.4f\n", before, 100 * after.top1(),
              100 * after.top5(), after.loss());
  write_bitmaps("pictures/train", data, *data.train);
  write_bitmaps("pictures/val", data, *data.validation);
  return after.loss() < before ? 0 : 1;
}
