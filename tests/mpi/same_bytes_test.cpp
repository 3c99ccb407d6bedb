// A run has the same bytes on any number of ranks and threads.

#include "apps/training/batch_norm.h"
#include "engine/io/file.h"
#include "tests/models/overfit.h"
#include "tests/mpi/on_ranks.h"
#include "tests/training/few_steps.h"

using namespace tessera;

namespace {

// The options that make a family's preset small.
std::string options_of(const Family& family) {
  Json config = preset(family.preset, 16, 3);
  config.merge_patch(family.smaller);
  std::string text = std::string(" --model ") + family.preset;
  for (const auto& [key, value] : family.smaller.items())
    text += " --set 'model." + key + "=" + value.dump() + "'";
  if (has_batch_norm(build(config))) text += " --set batch_norm=micro_batch";
  return text;
}

void check_same_on_all(const std::string& model, int most = 4) {
  const int last = sanitized ? 2 : most;
  const TemporaryFolder folder;
  const std::filesystem::path alone = folder / "1";
  const Said said = tessera_program("train --threads 1 --out " + alone.string() + few_batches(model), "");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  for (int ranks = 2; ranks <= last; ++ranks) {
    CAPTURE(ranks);
    const std::filesystem::path out = folder / std::to_string(ranks);
    const Said together = on_ranks(ranks, "train --threads " + std::to_string(1 + ranks % 2) + " --out " +
                                              out.string() + few_batches(model));
    CAPTURE(together.err);
    REQUIRE(together.code == 0);
    check_same_bytes(alone, out);
  }
}

}  // namespace

TEST_CASE("every family of classifiers has the same bytes on 1, 2, 3 and 4 ranks, with 1 and 2 threads") {
  if (!with_mpi()) return;
  const auto all = families();
  for (size_t i = 0; i < all.size(); i += sanitized ? 4 : 1) {
    CAPTURE(all[i].preset);
    check_same_on_all(options_of(all[i]));
  }
}

TEST_CASE("a diffusion model and a segmenter have the same bytes on several ranks") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::string drawing = folder / "dit.json", segments = folder / "segment.json";
  Json draws = parse_json(dit_sigma, "dit"), cuts = parse_json(segmenter, "segmenter");
  draws["image_size"] = 16;
  draws["num_classes"] = 10;
  cuts["num_classes"] = 6;
  write_json(drawing, draws);
  write_json(segments, cuts);
  check_same_on_all(" --model " + drawing, 2);
  check_same_on_all(" --dataset shapes-seg --model " + segments + " --set batch_norm=micro_batch", 2);
}

TEST_CASE("a run in bf16 has the same bytes on 1, 2, 3 and 4 ranks") {
  if (!with_mpi()) return;
  check_same_on_all(small_vit_of_ranks + " --precision bf16");
}

TEST_CASE("mixed pictures, a whole batch at once, and batch norms of the whole batch have the same bytes") {
  if (!with_mpi()) return;
  check_same_on_all(small_vit_of_ranks + " --set augment.mixup=0.8 --set augment.cutmix=1", 3);
  check_same_on_all(small_vit_of_ranks + " --set micro_batch=0", 2);
  check_same_on_all(small_vit_of_ranks + " --set micro_batch=4", 3);  // a rank without a micro-batch
  check_same_on_all(" --model resnet56 --set model.depth=8 --set model.width=4 --set micro_batch=0", 2);
}
