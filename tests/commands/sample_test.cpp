#include <doctest/doctest.h>

#include <algorithm>

#include "apps/reporting/sample_file.h"
#include "apps/reporting/sample_grid.h"
#include "data/formats/image.h"
#include "data/formats/numpy.h"
#include "engine/core/error.h"
#include "models/diffusion.h"
#include "tests/commands/program.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

// A few steps of a tiny DiT; what it draws is noise still.
Said train_tiny(const TemporaryFolder& folder, const std::string& more = "") {
  return tessera_program(
      "train --model dit-xt --dataset shapes --image-size 16 --epochs 3 --batch 16 --seed 3"
      " --set data.train_images=64 --set data.validation_images=20 --set model.dim=16 --set model.depth=1"
      " --set 'model.attention={\"heads\":2,\"head_dim\":8}' --set model.time_dim=16 --set model.steps=40"
      " --set schedule.warmup_epochs=0 --out " +
      (folder / "run").string() + " " + more);
}

}  // namespace

TEST_CASE("a diffusion model trains by its loss alone") {
  const TemporaryFolder folder;
  const Said said = train_tiny(folder);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("Done in f32: best validation loss") != std::string::npos);
  CHECK(said.out.find("tessera sample") != std::string::npos);
  CHECK(said.out.find("acc") == std::string::npos);
  CHECK(said.out.find("top-1") == std::string::npos);

  const std::string html = bytes_of(folder / "run" / "report.html");
  CHECK(html.find("Drawn images") != std::string::npos);
  CHECK(html.find("alt=\"samples\"") != std::string::npos);
  CHECK(html.find("top-1") == std::string::npos);

  const std::string metrics = bytes_of(folder / "run" / "metrics.csv");
  CHECK(metrics.find("validation_loss,validation_top1,validation_top5\n") != std::string::npos);
  CHECK(metrics.find(",,\n") != std::string::npos);  // no accuracies
  const auto config = nlohmann::json::parse(bytes_of(folder / "run" / "config.json"));
  CHECK(config["smoothing"] == 0);
  CHECK(config["augment"]["crop_padding"] == 0);

  const std::string run = (folder / "run").string();
  const Said eval = tessera_program("eval " + run + " --json"),
             again = tessera_program("eval " + run + " --json");
  REQUIRE(eval.code == 0);
  CHECK(eval.json() == again.json());  // the same noise each time
  CHECK(eval.json()["loss"] > 0);
  CHECK(!eval.json().contains("top1"));
  const Said table = tessera_program("eval " + run);
  CHECK(table.out.find("loss") != std::string::npos);
  CHECK(table.out.find("top-1") == std::string::npos);

  const Said predict = tessera_program("predict " + run + " any.png");
  CHECK(predict.code == 2);
  CHECK(predict.complains_of("tessera sample"));
}

TEST_CASE("a diffusion run that is broken off ends with the same bytes") {
  const TemporaryFolder whole, parts;
  REQUIRE(train_tiny(whole).code == 0);
  REQUIRE(train_tiny(parts, "--stop-after 6 --threads 1").code == 0);
  REQUIRE(tessera_program("train --resume " + (parts / "run").string()).code == 0);
  check_same_end(whole / "run", parts / "run");
}

TEST_CASE("sample writes a grid, the same for the same seed") {
  const TemporaryFolder folder;
  REQUIRE(train_tiny(folder).code == 0);
  const std::string run = (folder / "run").string();
  const auto drawn = [&](const std::string& more) {
    const Said said =
        tessera_program("sample " + run + " --out " + (folder / "grid.png").string() + " " + more);
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    return load_image(folder / "grid.png");
  };
  const Image all = drawn("--count 4 --steps 4");    // 40 images: more than are drawn at once
  constexpr int row = 24 + 64 + 6, column = 64 + 6;  // words, an image of 16 pixels enlarged, a gap
  CHECK(all.height == 6 + 10 * row);
  CHECK(all.width == 300);
  CHECK(all.at(0, 0)[0] == 250);  // the margin
  for (int y = 0; y < 64; ++y)    // each pixel is four by four
    CHECK(std::equal(all.at(6 + 24 + y, 6), all.at(6 + 24 + y, 6) + 3 * 4, all.at(6 + 24 + y / 4 * 4, 6)));
  const auto words = [&](int y) {  // the darkest value of a name's line
    return *std::min_element(all.at(y, 0), all.at(y + 24, 0));
  };
  CHECK(words(6) < 100);
  CHECK(words(6 + 9 * row) < 100);

  const std::string two = "--classes star,7 --count 3 --steps 4 ";
  const Image first = drawn(two);
  CHECK(first.height == 6 + 2 * row);
  CHECK(drawn("--classes star --count 8 --steps 4").width == 6 + 8 * column);
  CHECK(drawn(two + "--threads 1") == first);
  CHECK(drawn(two + "--seed 1") != first);
  CHECK(drawn(two + "--sampler ddpm") != first);
  CHECK(drawn(two + "--guidance 4") != first);
  CHECK(drawn("--classes 0 --count 1").height == 6 + row);  // all of the chain's 40 steps
}

TEST_CASE("sample writes many images into an .npz, each the same for any batch, threads and count") {
  const TemporaryFolder folder;
  REQUIRE(train_tiny(folder).code == 0);
  const auto drawn = [&](const std::string& more) {
    const Said said = tessera_program("sample " + (folder / "run").string() + " --steps 4 --out " +
                                      (folder / "x.npz").string() + " " + more);
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    CHECK(!std::filesystem::exists(folder / "x.npz.partial"));
    return bytes_of(folder / "x.npz");
  };
  for (const std::string sampler : {"--sampler ddpm ", "--sampler ddim "}) {
    const std::string whole = drawn(sampler + "--count 11");
    CHECK(drawn(sampler + "--count 11 --format npz --batch 1") == whole);
    CHECK(drawn(sampler + "--count 11 --batch 4 --threads 1") == whole);
    CHECK(drawn(sampler + "--count 11 --seed 1") != whole);
    CHECK(drawn(sampler + "--count 11 --guidance 3") != whole);
  }
  drawn("--count 11");
  const NamedTensors eleven = read_numpy(folder / "x.npz");
  CHECK((eleven[0].first == "arr_0" && eleven[0].second.shape() == Shape{11, 16, 16, 3}));
  CHECK((eleven[1].first == "arr_1" && eleven[0].second.dtype() == DType::u8));
  drawn("--count 5 --batch 3");
  const NamedTensors five = read_numpy(folder / "x.npz");
  for (size_t k = 0; k < 2; ++k) CHECK(five[k].second.values() == eleven[k].second.rows(0, 5).values());
  drawn("--count 5 --classes star,2");
  const std::vector<int64_t> labels = read_numpy(folder / "x.npz")[1].second.integers();
  CHECK((labels[1] == 2 && labels[0] == labels[4] && labels[1] == labels[3]));
}

TEST_CASE("an .npz that was broken off goes on from what it had, to the same bytes") {
  const TemporaryFolder folder;
  REQUIRE(train_tiny(folder).code == 0);
  const Checkpoint checkpoint = read_checkpoint(folder / "run", Device::cpu);
  SampleOptions how = default_sampling(checkpoint.model, 3);
  SampleSet set{.count = 10, .seed = 4, .batch = 4};
  const auto path = folder / "x.npz", partial = folder / "x.npz.partial";
  write_samples(checkpoint, set, how, Device::cpu, folder / "whole.npz");
  const auto break_off = [&] {
    const auto breaks = [](int64_t) { fail("broken off"); };
    CHECK(error_of([&] { write_samples(checkpoint, set, how, Device::cpu, path, breaks); }) == "broken off");
    REQUIRE(std::filesystem::exists(partial));
  };
  break_off();
  put(partial, bytes_of(partial) + "half a sample");  // as a kill leaves it
  int64_t first = 0;
  set.batch = 3;
  write_samples(checkpoint, set, how, Device::cpu, path, [&](int64_t done) { first = first ? first : done; });
  CHECK(first == 7);  // four were there
  CHECK(bytes_of(path) == bytes_of(folder / "whole.npz"));

  break_off();
  std::string damaged = bytes_of(partial);
  damaged[damaged.size() - 40] ^= 1;  // in the third of three
  put(partial, damaged);
  first = 0;
  write_samples(checkpoint, set, how, Device::cpu, path, [&](int64_t done) { first = first ? first : done; });
  CHECK(first == 5);  // the damaged one is drawn again
  CHECK(bytes_of(path) == bytes_of(folder / "whole.npz"));

  break_off();
  set.seed = 5;
  CHECK_THROWS_WITH(write_samples(checkpoint, set, how, Device::cpu, path),
                    doctest::Contains("x.npz.partial: is of"));
}

TEST_CASE("what cannot be trained or drawn is refused") {
  const TemporaryFolder folder;
  const Said smoothed = train_tiny(folder, "--set smoothing=0.1");
  CHECK(smoothed.code == 2);
  CHECK(smoothed.complains_of("no label to smooth"));

  REQUIRE(train_tiny(folder).code == 0);
  const std::string sample = "sample " + (folder / "run").string(),
                    out = " --out " + (folder / "grid.png").string();
  check_refused(sample, "--out");
  check_refused(sample + " --out grid.jpg", ".png");
  check_refused(sample + out + " --format npz", "wanted a name that ends in .npz");
  check_refused(sample + out + " --count 101", "--format npz takes more");
  check_refused(sample + " --out x.npz --batch 0", "--batch");
  check_refused(sample + out + " --classes stra", "did you mean 'star'");
  check_refused(sample + out + " --classes 10", "0 to 9");
  check_refused(sample + out + " --classes 1,,2", "no class ''");
  check_refused(sample + out + " --count 0", "--count");
  check_refused(sample + out + " --steps 41", "41");
  check_refused(sample + out + " --steps 1", "--steps");
  check_refused(sample + out + " --sampler euler", "--sampler");
  check_refused(sample + " --count 1 --steps 2 --out " + (folder / "no" / "grid.png").string(), "grid.png");
  CHECK(!std::filesystem::exists(folder / "grid.png"));

  const std::string classifier = (folder / "classifier").string();
  REQUIRE(tessera_program("train --dataset shapes --image-size 16 --epochs 1 --batch 16 --set "
                          "data.train_images=32 --set data.validation_images=10 --set model.dim=16 --set "
                          "model.depth=1 --set schedule.warmup_epochs=0 --out " +
                          classifier)
              .code == 0);
  check_refused("sample " + classifier + out, "is not a diffusion model");
}
