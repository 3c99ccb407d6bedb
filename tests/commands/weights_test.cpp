// Weights that timm saved, without a run: train --init, eval, predict and summary take them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "data/formats/image.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

const std::string weights = fixture("timm/vit"), answers = fixture("timm/vit-answers");

// timm's weights beside a config of their model, perhaps for other images and classes.
struct Files {
  TemporaryFolder folder;
  std::string model = folder / "vit.json";

  explicit Files(int64_t classes = 5, int64_t image_size = 16) {
    auto config = nlohmann::json::parse(read_safetensors(answers).metadata.at("config"));
    config["num_classes"] = classes;
    config["image_size"] = image_size;
    std::ofstream(model) << config;
  }

  Said train(const std::string& run, const std::string& more, int64_t size = 16) const {
    return tessera_program("train --dataset shapes --image-size " + std::to_string(size) + " --model " +
                           model + " --out " + (folder / run).string() +
                           " --epochs 1 --batch 16 --set data.train_images=32 --set data.validation_images=20"
                           " --set schedule.warmup_epochs=0 --set optimizer.lr=1e-9"
                           " --set schedule.min_lr=0 --set optimizer.weight_decay=0 --init " +
                           more);
  }

  Tensor trained(const std::string& run, const std::string& name) const {
    return at((folder / run / "last.safetensors").string(), name);
  }

  static Tensor at(const std::string& file, const std::string& name) {
    const TensorFile read = read_safetensors(file);
    const Tensor* value = read.find(name);
    REQUIRE_MESSAGE(value, name);
    return *value;
  }
};

bool near(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.values(), y = b.values();
  return x.size() == y.size() &&
         std::equal(x.begin(), x.end(), y.begin(), [](double p, double q) { return std::abs(p - q) < 1e-6; });
}

}  // namespace

TEST_CASE("train --init begins with timm's weights, a fresh head, and says all that does not fit") {
  const Files files(10);
  const Said refused = files.train("refused", weights);
  CHECK(refused.code == 2);
  CHECK(refused.complains_of("head.weight: [5, 16] in the file, the model has [10, 16]"));
  CHECK(refused.complains_of("head.bias: [5] in the file"));

  const Said said = files.train("run", weights + " --fresh-head");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.out.find("init   " + weights) != std::string::npos);
  for (const char* name : {"pos_embed", "blocks.1.attn.qkv.weight"})
    CHECK(near(files.trained("run", name), Files::at(weights, name)));

  SUBCASE("its config repeats it") {
    const std::string config = files.folder / "run" / "config.json";
    const auto init = nlohmann::json::parse(bytes_of(config))["init"];
    CHECK(init["weights"] == weights);
    CHECK(init["fresh_head"] == true);
    const Said again =
        tessera_program("train --recipe " + config + " --out " + (files.folder / "b").string());
    REQUIRE(again.code == 0);
    CHECK(bytes_of(files.folder / "run" / "last.safetensors") ==
          bytes_of(files.folder / "b" / "last.safetensors"));
  }
  SUBCASE("a run folder is a beginning too, and no resume changes it") {
    const std::string run = files.folder / "run";
    const Said next = files.train("next", run);
    CAPTURE(next.err);
    REQUIRE(next.code == 0);
    CHECK(near(files.trained("next", "head.weight"), files.trained("run", "head.weight")));
    CHECK(tessera_program("train --resume " + run + " --init " + weights).complains_of("--init"));
  }
}

TEST_CASE("train --init carries positions to another image size where asked") {
  const Files files(10, 32);
  const std::string init = weights + " --fresh-head";
  CHECK(files.train("refused", init, 32).complains_of("pos_embed: [1, 17, 16] in the file"));
  const Said said = files.train("run", init + " --resize-positions", 32);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(files.trained("run", "pos_embed").shape() == Shape{1, 65, 16});
}

TEST_CASE("a run goes on although the weights that it began with are gone") {
  const Files files(10);
  const std::string copy = files.folder / "copy.safetensors", run = files.folder / "run";
  std::filesystem::copy(weights, copy);
  REQUIRE(files.train("run", copy + " --fresh-head --stop-after 1").code == 0);
  std::filesystem::remove(copy);
  const Said said = tessera_program("train --resume " + run);
  CAPTURE(said.err);
  CHECK(said.code == 0);
  CHECK(said.out.find("Done in f32: best top-1") != std::string::npos);
}

TEST_CASE("what init may be") {
  CHECK(tessera_program("train --dataset shapes --fresh-head").complains_of("give their file too"));
  CHECK(
      tessera_program("train --dataset shapes --set init.wieghts=x").complains_of("did you mean 'weights'?"));
  CHECK(tessera_program("train --dataset shapes --init nosuch.safetensors").complains_of("nosuch"));
}

TEST_CASE("predict --weights: timm's probabilities of a picture") {
  const Files files;
  Image picture(16, 16);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 37 % 256);
  const std::string path = files.folder / "a.png", names = files.folder / "names.txt";
  write_png(path, picture);
  std::ofstream(names) << "ash\nbeech\nelm\noak\nyew\n";
  const std::string command = "predict --weights " + weights + " --model " + files.model;
  const Said said = tessera_program(command + " --names " + names + " --json " + path + " " + path);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  REQUIRE(said.json().size() == 2);
  double sum = 0;
  const auto rows = said.json();
  for (const auto& each : rows[0]["top"]) sum += each["probability"].get<double>();
  CHECK(sum == doctest::Approx(1));
  const Said other = tessera_program(command + " --mean 0.5,0.5,0.5 --deviation 0.5,0.5,0.5 --json " + path);
  REQUIRE(other.code == 0);
  CHECK(other.json()[0]["top"][0]["name"].get<std::string>().starts_with("class "));
  CHECK(other.json()[0]["top"][0]["probability"] != said.json()[0]["top"][0]["probability"]);

  std::ofstream(names) << "ash\nbeech\n";
  CHECK(tessera_program(command + " --names " + names + " " + path).complains_of("has 2 lines with a name"));
  CHECK(tessera_program(command).complains_of("of what?"));
  CHECK(tessera_program("predict --weights " + weights + " " + path).complains_of("--model"));
  CHECK(tessera_program("predict " + path + " " + path + " --model vit").complains_of("--weights"));
  CHECK(tessera_program(command + " --deviation 0,1,1 " + path).complains_of("--deviation"));
}

TEST_CASE("eval --weights judges them on a data set of as many classes") {
  const Files files(10);
  REQUIRE(files.train("run", weights + " --fresh-head").code == 0);
  const std::string trained = files.folder / "run" / "last.safetensors";
  const std::string with = "eval --dataset shapes --json --weights ";
  const Said said = tessera_program(with + trained + " --model " + files.model);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json()["images"] > 0);
  CHECK(said.json()["classes"][0]["name"] == "disc");

  const Files five;
  CHECK(tessera_program(with + weights + " --model " + five.model).complains_of("tells 5 classes apart"));
  CHECK(tessera_program("eval --weights " + trained + " --model " + files.model).complains_of("--dataset"));
  CHECK(tessera_program("eval").complains_of("what of?"));
  CHECK(
      tessera_program("eval " + trained + " --weights " + trained + " --model vit").complains_of("what of?"));
}

TEST_CASE("summary --weights says whether they fit") {
  const Files five, ten(10), larger(5, 32);
  const Said said = tessera_program("summary " + five.model + " --weights " + weights);
  CHECK(said.code == 0);
  CHECK(said.out.find(weights + " fits this model") != std::string::npos);
  const auto with = [](const Files& files) { return "summary " + files.model + " --weights " + weights; };
  CHECK(tessera_program(with(ten)).complains_of("head.weight: [5, 16]"));
  CHECK(tessera_program(with(ten) + " --fresh-head --json").code == 0);
  CHECK(tessera_program(with(larger)).complains_of("pos_embed: [1, 17, 16]"));
  CHECK(tessera_program(with(larger) + " --resize-positions --json").code == 0);
  CHECK(tessera_program("summary vit --fresh-head").complains_of("--weights"));
}
