// All ranks must have these things alike, and are refused otherwise.

#include "apps/ranks/alike.h"

#include "data/registry.h"
#include "engine/io/safetensors.h"
#include "tests/data/files.h"
#include "tests/mpi/on_ranks.h"

using namespace tessera;

TEST_CASE("another name or size of any file is another data set") {
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (int i = 0; i < 140; ++i)
      put_png(folder / split / (i % 2 ? "cat" : "dog") / (std::to_string(i) + ".png"),
              random_image(4, 4, static_cast<uint64_t>(i)));
  const auto digest = [&] { return digest_of(open_dataset("folder", folder.path(), {.image_size = 4})); };
  const std::string before = digest();
  CHECK(digest() == before);
  for (int i = 0; i < 140; i += 23) {
    CAPTURE(i);
    const std::filesystem::path file =
                                    folder / "train" / (i % 2 ? "cat" : "dog") / (std::to_string(i) + ".png"),
                                other = file.parent_path() / (std::to_string(i) + "x.png");
    std::filesystem::rename(file, other);
    CHECK(digest() != before);
    std::filesystem::rename(other, file);
    CHECK(digest() == before);
  }
  const std::filesystem::path longer = folder / "val" / "cat" / "77.png";
  std::filesystem::resize_file(longer, std::filesystem::file_size(longer) + 1);
  CHECK(digest() != before);
}

TEST_CASE("another mask is another data set") {
  const auto digest = [](uint8_t last) {
    const std::vector<uint8_t> pixels(2 * 2 * 2 * 3, 7);
    std::vector<uint8_t> masks(2 * 2 * 2, 1);
    masks.back() = last;
    Dataset dataset;
    dataset.image_shape = {3, 2, 2};
    dataset.train = dataset.validation =
        std::make_shared<MaskedSplit>(2, 2, pixels, masks, std::vector<int32_t>{0, 0}, "test");
    return digest_of(dataset);
  };
  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
}

TEST_CASE("another map of a teacher is noticed") {
  const TemporaryFolder folder;
  const Dataset dataset =
      open_dataset("shapes", "", {.image_size = 16, .train_images = 8, .validation_images = 4});
  const auto put_map = [&](int64_t i, double score) {
    write_safetensors(folder / (dataset.train->name(i) + ".safetensors"),
                      {{"token_labels", Tensor::from({score, 3}, {2, 1, 1, 1})}});
  };
  for (int64_t i = 0; i < 8; ++i) put_map(i, 1);
  const auto digest = [&] { return digest_of(TokenLabels(folder.path(), dataset), 8); };
  const std::string before = digest();
  CHECK(digest() == before);
  put_map(5, 2);
  CHECK(digest() != before);
}

TEST_CASE("configs of ranks may differ in folders and memory alone") {
  const TrainConfig config;
  const std::string before = common_part_of(config);
  TrainConfig other = config;
  other.about = "another text";
  other.data.dir = "elsewhere";
  other.data.cache_mb = 1;
  CHECK(common_part_of(other) == before);
  other.patience = 3;
  CHECK(common_part_of(other) != before);
  other = config;
  other.checkpoint.every_steps = 5;
  CHECK(common_part_of(other) != before);
}

TEST_CASE("ranks that would save or end at other steps are refused, and so is a process that never joins") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::string train = program_path() + " train --threads 1 --out " + (folder / "run").string() +
                            few_batches(small_vit_of_ranks);
  const auto refused = [&](const std::string& other, const std::string& why) {
    const Said said = on_unlike_ranks("env TESSERA_RANK_PATIENCE=3 " + train, other, 1, true);
    CAPTURE(said.err);
    CHECK(said.code == 2);
    CHECK(said.err.find(why) != std::string::npos);
    CHECK(!std::filesystem::exists(folder / "run"));
  };
  refused(train + " --patience 1", "rank 1 has another config than rank 0");
  refused(train + " --set checkpoint.every_steps=1", "rank 1 has another config than rank 0");
  // The process stays alive: if it ended, mpirun itself would end the others, should they have joined by
  // then.
  refused("sleep 60", "waited 3 seconds for the other ranks to join");
}

TEST_CASE("a rank with another config is refused, and so is a second run in the folder") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  const std::string one = "train --out " + run + few_batches(small_vit_of_ranks);
  const Said differing = on_ranks(1, one + " : -n 1 " + program_path() + " " + one + " --seed 7");
  CAPTURE(differing.err);
  CHECK(differing.code == 2);
  CHECK(differing.err.find("rank 1 has another config than rank 0") != std::string::npos);
  CHECK(!std::filesystem::exists(run));

  REQUIRE(on_ranks(2, one).code == 0);
  const Said again = on_ranks(2, one);
  CHECK(again.code == 2);
  CHECK(again.err.find("holds a run already") != std::string::npos);
}
