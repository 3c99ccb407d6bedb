// Several ranks with a GPU each: the emulated backend's, or real ones.

#include "engine/core/device.h"
#include "tests/mpi/on_ranks.h"

using namespace tessera;

namespace {

bool with_gpus() {
  if (!with_mpi()) return false;
  if (!has_cuda) MESSAGE("skipped: this program was built without CUDA");
  return has_cuda;
}

Said train_on_gpus(int ranks, const std::filesystem::path& out, const std::string& options,
                   const std::string& environment = "") {
  const std::string arguments = "train --device cuda --threads 1 --out " + out.string() +
                                few_batches(small_vit_of_ranks + " --set data.validation_images=2", 1) +
                                options;
  return ranks == 1 ? tessera_program(arguments, environment) : on_ranks(ranks, arguments, environment);
}

}  // namespace

TEST_CASE("cuda: a run on ranks has the same bytes on 1, 2 and 3 ranks, in f32 and bf16") {
  if (!with_gpus()) return;
  for (const char* precision : {"f32", "bf16"}) {
    const TemporaryFolder folder;
    const std::string options = std::string(" --precision ") + precision;
    const Said alone = train_on_gpus(1, folder / "1", options);
    CAPTURE(alone.err);
    REQUIRE(alone.code == 0);
    for (int ranks = 2; ranks <= 3; ++ranks) {
      CAPTURE(ranks);
      const std::filesystem::path out = folder / std::to_string(ranks);
      const Said together = train_on_gpus(ranks, out, options);
      CAPTURE(together.err);
      REQUIRE(together.code == 0);
      check_same_bytes(folder / "1", out);
    }
  }
}

TEST_CASE("cuda: fast sums of ranks have other bits") {
  if (!with_gpus()) return;
  const TemporaryFolder folder;
  const std::string options = " --set micro_batch=1";  // 8 of them, which 3 ranks add up in parts of no tree
  for (const char* sums : {"same", "fast"}) {
    const Said said = train_on_gpus(3, folder / sums, options, std::string("TESSERA_RANK_SUMS=") + sums);
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    if (said.err.find("travel over the host's memory") != std::string::npos) {
      MESSAGE("skipped: NCCL does not join these ranks");
      return;
    }
  }
  CHECK(bytes_of(folder / "same" / "last.safetensors") != bytes_of(folder / "fast" / "last.safetensors"));
}
