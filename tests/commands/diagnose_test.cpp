#include <doctest/doctest.h>

#include <cmath>

#include "apps/reporting/run_names.h"
#include "data/formats/image.h"
#include "engine/core/random.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

const std::string small =
    " --set model.dim=16 --set model.depth=2 --set model.attention.heads=2"
    " --set model.attention.head_dim=8";

void train_on(const std::string& data, const std::filesystem::path& to, const std::string& more) {
  const Said said = tessera_program("train --epochs 1 --batch 4 --set schedule.warmup_epochs=0 --dataset " +
                                    data + " " + more + " --out " + to.string());
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
}

void train(const std::filesystem::path& to, const std::string& preset, const std::string& more = "") {
  train_on(
      "shapes", to,
      "--image-size 32 --set data.train_images=32 --set data.validation_images=10 --model " + preset + more);
}

// Pictures of two classes, for training and validation, in folders of their names.
void put_pictures(const std::filesystem::path& folder, uint64_t seed) {
  Random random(seed);
  for (const char* name : {"train/a", "train/b", "val/a", "val/b"}) {
    std::filesystem::create_directories(folder / name);
    for (const char* file : {"1.png", "2.png", "3.png"}) {
      Image image(16, 16);
      for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random.below(256));
      write_png(folder / name / file, image);
    }
  }
}

// Means and variances of latents of two classes.
void put_latents(const std::filesystem::path& path, int64_t count) {
  Random random(1);
  const Shape shape{count, 4, 8, 8};
  std::vector<double> means;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < shape.elements(); ++i) means.push_back(5 * random.normal());
  for (int64_t i = 0; i < count; ++i) labels.push_back(i % 2);
  write_safetensors(path, {{"means", Tensor::from(means, shape)},
                           {"logvars", Tensor::full(shape, -2)},
                           {"labels", Tensor::from(labels, {count})}});
}

nlohmann::json diagnosed(const std::string& arguments, const TemporaryFolder& folder) {
  const Said said =
      tessera_program("diagnose " + arguments + " --json --out " + (folder / "page.html").string());
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  return said.json()["runs"];
}

size_t count_of(const std::string& what, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("diagnose writes the figures of several runs into one page, and their numbers") {
  const TemporaryFolder folder;
  train(folder / "vit", "vit", small);
  train(folder / "sl-vit", "sl-vit", small);
  const std::string page = folder / "page.html", csv = folder / "numbers.csv";
  const Said said =
      tessera_program("diagnose " + (folder / "vit").string() + " " + (folder / "sl-vit").string() +
                      " --images 6 --shown 1 --json --out " + page + " --csv " + csv);
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const auto runs = said.json()["runs"];
  REQUIRE(runs.size() == 2);
  for (const auto& run : runs) {
    CHECK(run["images"] == 6);
    REQUIRE(run["layers"].size() == 2);
    for (const auto& layer : run["layers"]) {
      CHECK(layer["sqrt_d"].get<double>() == doctest::Approx(std::sqrt(8.0)));
      CHECK(layer["divergence"].size() == 2);
      CHECK(layer["divergence"][0].get<double>() > 0);
    }
  }
  CHECK_FALSE(runs[0]["layers"][0]["learned"].get<bool>());
  CHECK(runs[1]["layers"][0]["learned"].get<bool>());
  CHECK(runs[1]["layers"][0]["temperature"][0] != runs[0]["layers"][0]["temperature"][0]);
  // A row whose own key is masked cannot be flat over all 65 keys.
  CHECK(runs[1]["layers"][0]["divergence"][0].get<double>() > std::log(65.0 / 64.0) - 1e-4);
  const std::string html = bytes_of(page);
  CHECK(html.find("Temperature of the softmax by depth") != std::string::npos);
  CHECK(html.find("sl-vit") != std::string::npos);
  CHECK(html.find("Learned spatial priors") == std::string::npos);
  const std::string numbers = bytes_of(csv);
  CHECK(numbers.starts_with("run,module,quantity,head,row,column,value\n"));
  CHECK(numbers.find("sl-vit,blocks.1.attn,temperature,2,,,") != std::string::npos);
}

TEST_CASE("diagnose refuses a query outside of the picture and a run that is not there") {
  check_refused("diagnose nowhere --query-row 1.5", "--query-row");
  check_refused("diagnose nowhere", "nowhere: no such file or folder; a run folder or a checkpoint");
}

TEST_CASE("diagnose measures each run on the data of its own folder, and --data names another") {
  const TemporaryFolder folder;
  put_pictures(folder / "one", 1);
  put_pictures(folder / "two", 2);
  for (const std::string name : {"one", "two"})
    train_on("folder", folder / ("run-" + name),
             "--image-size 16 --model vit --set augment.crop_padding=0 --data " + (folder / name).string() +
                 small);
  const std::string both = (folder / "run-one").string() + " " + (folder / "run-two").string();
  const auto own = diagnosed(both + " --shown 1", folder);
  const std::string page = bytes_of(folder / "page.html");
  CHECK(count_of("alt=\"" + (folder / "one/val/a/1.png").string() + ": attention of run-one\"", page) == 1);
  CHECK(count_of("alt=\"" + (folder / "two/val/a/1.png").string() + ": attention of run-two\"", page) == 1);
  for (const auto& run : own) CHECK(run["images"] == 6);
  const auto swapped =
      diagnosed((folder / "run-one").string() + " --data " + (folder / "two").string(), folder);
  CHECK(swapped[0]["layers"][0]["divergence"] != own[0]["layers"][0]["divergence"]);
  const auto same = diagnosed((folder / "run-one").string() + " --data " + (folder / "one").string(), folder);
  CHECK(same[0]["layers"] == own[0]["layers"]);
}

TEST_CASE("diagnose tells the runs of an ablation apart by the folders above them") {
  const TemporaryFolder folder;
  const std::string vit = folder / "preset=vit/seed-0", s_vit = folder / "preset=s-vit/seed-0";
  train(vit, "vit", small);
  train(s_vit, "s-vit", small);
  const auto runs =
      diagnosed(vit + " " + s_vit + " --images 2 --shown 1 --csv " + (folder / "n.csv").string(), folder);
  CHECK(runs[0]["run"] == "preset=vit/seed-0");
  CHECK(runs[1]["run"] == "preset=s-vit/seed-0");
  CHECK(bytes_of(folder / "n.csv").find("\npreset=s-vit/seed-0,blocks.0.attn,") != std::string::npos);
  CHECK(bytes_of(folder / "page.html").find("attention of preset=vit/seed-0, preset=s-vit/seed-0") !=
        std::string::npos);
}

TEST_CASE("names of runs are as short as tells them apart") {
  using Names = std::vector<std::string>;
  CHECK(names_of_runs({"runs/vit", "runs/sl-vit/"}) == Names{"vit", "sl-vit"});
  CHECK(names_of_runs({"runs/vit", "runs/vit/last.safetensors"}) == Names{"vit", "vit/last"});
  CHECK(names_of_runs({"a/x/seed-0", "a/y/seed-0"}) == Names{"x/seed-0", "y/seed-0"});
  CHECK(names_of_runs({"a/x/best.safetensors", "b/x/best.safetensors"}) == Names{"a/x/best", "b/x/best"});
  CHECK(names_of_runs({"a/../runs/vit", "./runs/vit"}) == Names{"vit", "vit"});
  CHECK(names_of_runs({"."})[0] == std::filesystem::current_path().filename().string());
}

TEST_CASE("diagnose measures a run on latents, of which there is no picture to show") {
  const TemporaryFolder folder;
  put_latents(folder / "train.safetensors", 16);
  put_latents(folder / "test.safetensors", 6);
  const std::string run = folder / "run";
  train_on("latents", run,
           "--model dit-s-2-decay --set model.time_dim=16 --set model.steps=40 --data " +
               folder.path().string() + small);
  const auto runs = diagnosed(run, folder);
  CHECK(runs[0]["measured_on"] == "6 latents of the validation split of latents");
  REQUIRE(runs[0]["layers"].size() == 2);
  for (const auto& layer : runs[0]["layers"]) {
    CHECK(layer["divergence"][0].get<double>() > 0);
    CHECK(layer["decay"][0].size() == 4);
    CHECK_FALSE(layer["decomposed"].get<bool>());
  }
  const std::string page = bytes_of(folder / "page.html");
  CHECK(page.find("Spatial decay around the query") != std::string::npos);
  CHECK(page.find("Where each run looks") == std::string::npos);
  CHECK(page.find("decomposed into rows and columns") == std::string::npos);
  const auto again = diagnosed(run + " --dtype f64", folder);
  CHECK(again[0]["layers"][1]["divergence"][0].get<double>() ==
        doctest::Approx(runs[0]["layers"][1]["divergence"][0].get<double>()).epsilon(1e-3));
  check_refused("diagnose " + run + " --pictures cat.jpg", "takes an autoencoder's latents");
}

TEST_CASE("diagnose says which decay maps are of attention along rows and columns") {
  const TemporaryFolder folder;
  train(folder / "sdt", "sdt-xt", " --set 'model.depth=[1,1,1,1]'");
  const auto layers = diagnosed((folder / "sdt").string() + " --images 1", folder)[0]["layers"];
  REQUIRE(layers.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(layers[i].contains("decay"));
    CHECK(layers[i]["decomposed"] == (i < 2));
  }
  CHECK(count_of("decomposed into rows and columns", bytes_of(folder / "page.html")) == 2);
}
