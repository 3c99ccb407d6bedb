// Commands that are started on several ranks.

#include "apps/ranks/scale_model.h"
#include "apps/ranks/shared_data.h"
#include "data/registry.h"
#include "tests/data/files.h"
#include "tests/error_of.h"
#include "tests/mpi/on_ranks.h"
#include "tests/mpi/thread_ranks.h"

using namespace tessera;

TEST_CASE("an evaluation says the same on any number of ranks") {
  if (!with_mpi()) return;
  const TemporaryFolder folder;
  const std::string run = folder / "run";
  REQUIRE(on_ranks(2, "train --threads 1 --out " + run +
                          few_batches(small_vit_of_ranks + " --set data.train_images=80", 1))
              .code == 0);
  const auto arguments = [&](const std::string& csv) {
    return "eval " + run + " --split train --batch 70 --json --threads 1 --images-csv " +
           (folder / csv).string();
  };
  const Said alone = tessera_program(arguments("1.csv"));
  REQUIRE(alone.code == 0);
  CHECK(alone.json()["images"] == 80);
  for (int ranks = 2; ranks <= 3; ++ranks) {
    const std::string csv = std::to_string(ranks) + ".csv";
    const Said together = on_ranks(ranks, arguments(csv));
    CAPTURE(together.err);
    CHECK(together.code == 0);
    CHECK(together.out == alone.out);
    CHECK(bytes_of(folder / csv) == bytes_of(folder / "1.csv"));
  }
}

TEST_CASE("other commands compute in the first process, and say so in a line") {
  if (!with_mpi()) return;
  const Said said = on_ranks(2, "gradcheck softmax --json");
  CHECK(said.code == 0);
  CHECK(said.out == tessera_program("gradcheck softmax --json").out);
  CHECK(said.err.find(
            "note: tessera gradcheck computes in one process; of 2 that mpirun started the others end") !=
        std::string::npos);
  const TemporaryFolder folder;
  const Said search =
      on_ranks(2, "train --find-lr --out " + (folder / "run").string() + few_batches(small_vit_of_ranks));
  CHECK(search.code == 2);
  CHECK(search.err.find("--find-lr computes on one rank") != std::string::npos);
}

TEST_CASE("an option that is not known is refused once, whatever the number of ranks") {
  if (!with_mpi()) return;
  const Said said = on_ranks(3, "train --outt run");
  CHECK(said.code == 2);
  const std::string words = "unknown option --outt";
  const size_t at = said.err.find(words);
  REQUIRE(at != std::string::npos);
  CHECK(said.err.find(words, at + 1) == std::string::npos);
}

TEST_CASE("tessera bench scale measures a reduction and predicts, and refuses an unknown network") {
  const std::string arguments =
      "bench scale --model vit --image-size 16 --classes 3 --batch 4 --micro-batch 2 --steps 2 --warmup 1 "
      "--threads 1 --network 10gbe,hdr --json";
  const Said alone = tessera_program(arguments);
  CAPTURE(alone.err);
  REQUIRE(alone.code == 0);
  CHECK(alone.json()["predictions"].size() == 10);  // 2 to 1,024 ranks
  CHECK(tessera_program("bench scale --network hrd")
            .complains_of("unknown network 'hrd'; did you mean 'hdr'?"));
  if (!with_mpi()) return;
  const Said together = on_ranks(3, arguments);
  CAPTURE(together.err);
  REQUIRE(together.code == 0);
  const nlohmann::json said = together.json();
  CHECK(said["reductions"].size() == 6);  // 2 and 3 ranks, three sizes
  for (const auto& row : said["reductions"]) CHECK(row["seconds"] > 0);
  for (const auto& row : said["predictions"])
    for (const char* network : {"measured", "10gbe", "hdr"}) {
      CHECK(row[network]["efficiency"] > 0);
      CHECK(row[network]["efficiency"] <= 1);
    }
}

TEST_CASE("the model of scaling has the limits of its formula") {
  const RankWork work{.step = 1, .backward = 0.1, .gradient_bytes = 4e6, .add_bandwidth = 4e9, .buckets = 2};
  const Network slow{"slow", 1e-3, 1e-4, 1e6}, fast{"fast", 0, 0, 1e15};
  CHECK(step_seconds(work, slow, 1) == 1);
  CHECK(step_seconds(work, fast, 1024) < 1.001);
  // 2 b L + 2 (1/2) S / W + (1/2) S / A
  CHECK(reduction_seconds(work, slow, 2) == doctest::Approx(4e-3 + 4 + 0.5e-3 * 2 / 2));
  CHECK(step_seconds(work, slow, 2) == doctest::Approx(1 + reduction_seconds(work, slow, 2) - 0.1));
  CHECK(reduction_seconds(work, slow, 64) > reduction_seconds(work, slow, 8));
  CHECK(branches_a_rank(4, 8) == 1);
  CHECK(branches_a_rank(3, 2) == 2);  // [0, 2) [2, 3), and [3, 4) [4, 6)
}

TEST_CASE("a program without MPI says under mpirun that it runs alone") {
#ifdef TESSERA_HAS_MPI
  MESSAGE("skipped: this program was built with MPI");
#else
  if (std::system("command -v mpirun >/dev/null") != 0) return;
  const TemporaryFolder folder;
  const Said said = on_ranks(2, "train --out " + (folder / "run").string() + few_batches(small_vit_of_ranks));
  CHECK(said.code == 2);
  CHECK(said.err.find("mpirun started 2 processes, but this tessera was built without MPI") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(folder / "run"));
#endif
}

TEST_CASE("ranks of a machine keep what they have decoded of files in one cache") {
  const TemporaryFolder folder;
  for (const char* split : {"train", "val"})
    for (int i = 0; i < 12; ++i)
      put_png(folder / split / (i % 2 ? "cat" : "dog") / (std::to_string(i) + ".png"),
              random_image(4, 4, static_cast<uint64_t>(i)));
  for (const int64_t train_images : {0, 8}) {  // all, and a random subset
    CAPTURE(train_images);
    std::vector<Image> decoded(12);
    on_threads(3, [&](ThreadRanks& ranks) {
      Dataset dataset =
          open_dataset("folder", folder.path(), {.image_size = 4, .train_images = train_images});
      CHECK(share_data(ranks, dataset) > 2 * 12 * 4 * 4 * 3);
      const Split& train = *dataset.train;
      const Share own = share_of(train.size(), ranks);
      for (int64_t i = own.first; i < own.end(); ++i) train.image(i, decoded[static_cast<size_t>(i)]);
      gather(ranks, int64_t{0});
      if (ranks.is_first()) std::filesystem::rename(folder / "train", folder / "away");
      gather(ranks, int64_t{0});
      Image image;  // no file is there any more
      for (int64_t i = 0; i < train.size(); ++i) {
        train.image(i, image);
        CHECK(image == decoded[static_cast<size_t>(i)]);
      }
      gather(ranks, int64_t{0});
      if (ranks.is_first()) std::filesystem::rename(folder / "away", folder / "train");
      gather(ranks, int64_t{0});
    });
  }
}

TEST_CASE("ranks of a machine keep one copy of the pictures in memory") {
  on_threads(3, [](ThreadRanks& ranks) {
    Dataset dataset =
        open_dataset("shapes", "", {.image_size = 16, .train_images = 0, .validation_images = 0});
    const Dataset own = dataset;
    const size_t shared = share_data(ranks, dataset);
    CHECK(shared == static_cast<size_t>(own.train->size() + own.validation->size()) * 16 * 16 * 3);
    CHECK(dataset.train.get() != own.train.get());
    Image found, wanted;
    for (int64_t i = 0; i < own.train->size(); i += 97) {
      dataset.train->image(i, found);
      own.train->image(i, wanted);
      CHECK(found == wanted);
      CHECK(dataset.train->label(i) == own.train->label(i));
      CHECK(dataset.train->source(i) == own.train->source(i));
    }
  });
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    CHECK(entry.path().filename().string().find("tessera-" + std::to_string(getpid())) == std::string::npos);
}
