// A run on an autoencoder's latents: training, resuming, evaluation, report, and what is refused.

#include <doctest/doctest.h>

#include "data/formats/numpy.h"
#include "engine/core/random.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

constexpr int64_t channels = 4, side = 8;

// Latents whose sign says their class, by their distribution.
void put_latents(const std::filesystem::path& path, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> means;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(i % 2);
    for (int64_t k = 0; k < channels * side * side; ++k)
      means.push_back((i % 2 == 0 ? 5 : -5) + random.normal());
  }
  const Shape shape{count, channels, side, side};
  write_safetensors(path, {{"means", Tensor::from(means, shape)},
                           {"logvars", Tensor::full(shape, -2)},
                           {"labels", Tensor::from(labels, {count})}});
}

Said train_tiny(const TemporaryFolder& folder, const std::string& run, const std::string& more = "") {
  return tessera_program(
      "train --model dit-s-2-decay --dataset latents --data " + folder.path().string() +
      " --epochs 3 --batch 8 --seed 3 --set model.dim=16 --set model.depth=1"
      " --set model.attention.heads=2 --set model.attention.head_dim=8"
      " --set model.time_dim=16 --set model.steps=40 --set schedule.warmup_epochs=0 --out " +
      (folder / run).string() + " " + more);
}

}  // namespace

TEST_CASE(
    "a diffusion model trains on latents, goes on after a break with the same bytes, and is evaluated") {
  const TemporaryFolder folder;
  put_latents(folder / "train.safetensors", 48, 1);
  put_latents(folder / "test.safetensors", 16, 2);
  const Said said = train_tiny(folder, "whole", "--set tensorboard=true");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("48 training and 16 validation latents, 2 classes, 8 x 8 x 4 numbers") !=
        std::string::npos);
  CHECK(said.out.find("--format npz") != std::string::npos);
  REQUIRE(train_tiny(folder, "parts", "--set tensorboard=true --stop-after 8 --threads 1").code == 0);
  REQUIRE(tessera_program("train --resume " + (folder / "parts").string()).code == 0);
  check_same_end(folder / "whole", folder / "parts");

  const std::string run = (folder / "whole").string();
  const Said eval = tessera_program("eval " + run + " --json");
  CAPTURE(eval.err);
  REQUIRE(eval.code == 0);
  CHECK(eval.json()["loss"] > 0);
  CHECK(eval.json() == tessera_program("eval " + run + " --json --threads 1").json());
  CHECK(bytes_of(folder / "whole" / "report.html").find("Drawn latents") != std::string::npos);
  CHECK(bytes_of(folder / "whole" / "report.html")
            .find("16 validation latents, 2 classes, 8 x 8 x 4 numbers") != std::string::npos);
  CHECK(tessera_program("report " + run).code == 0);
  const Said speed = tessera_program("bench loader --dataset latents --data " + folder.path().string() +
                                     " --seconds 0.1 --batch 8 --json");
  CAPTURE(speed.err);
  CHECK(speed.json()["images_per_second"] > 0);
  check_refused("inspect " + run, "latent");
  check_refused("sample " + run + " --out x.png", "--format npz");
  const auto file = folder / "z.npz";
  REQUIRE(tessera_program("sample " + run + " --count 3 --steps 4 --out " + file.string()).code == 0);
  const Tensor drawn = read_numpy(file)[0].second;
  CHECK((drawn.dtype() == DType::f32 && drawn.shape() == Shape{3, channels, side, side}));

  const Said info = tessera_program("data info latents " + folder.path().string() + " --json");
  CHECK(info.json()["latent_scale"] == 0.18215);
  CHECK(!info.json().contains("mean"));
  CHECK(tessera_program("data info latents " + folder.path().string()).out.find("deviation") ==
        std::string::npos);
  CHECK(tessera_program("data check latents " + folder.path().string()).code == 0);
  CHECK(tessera_program("data check latents " + (folder / "train.safetensors").string()).code == 0);
  CHECK(tessera_program("doctor " + folder.path().string()).out.find("data set latents") !=
        std::string::npos);
  CHECK(train_tiny(folder, "none", "--dry-run").out.find("16 pictures judged") != std::string::npos);
}

TEST_CASE("what does not go with latents is refused with the reason") {
  const TemporaryFolder folder;
  put_latents(folder / "train.safetensors", 20, 1);
  const std::string data = "train --dataset latents --data " + folder.path().string();
  check_refused(data + " --model sl-vit", "from which a diffusion model learns");
  check_refused(data + " --model dit-xt", "in_channels is 3, latents has 4");
  check_refused(data + " --model dit-s-2 --set augment.flip=true", "what an encoder made of them");
  check_refused(data + " --model dit-s-2 --image-size 16", "data.image_size is 16");
  check_refused(data + " --model dit-s-2 --set data.latent_scale=0", "latent_scale");
  check_refused("train --dataset shapes --model dit-xt --set data.latent_scale=1", "is for 'latents'");
  check_refused("train --dataset shapes --image-size 16 --model dit-s-2", "in_channels is 4, shapes has 3");
  check_refused("data show latents " + folder.path().string() + " --out x.png", "diffusion model");
  put(folder / "train.safetensors", "garbage");
  check_refused(data + " --model dit-s-2", "train.safetensors");
}
