#include <doctest/doctest.h>

#include <map>

#include <algorithm>
#include <cmath>

#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

const std::string small = "inspect sl-vit --image-size 16 --classes 3 --seed 5";

bool has(const TensorFile& file, const std::string& name) { return file.find(name) != nullptr; }

}  // namespace

TEST_CASE("tessera inspect: the list has a stable name for every value") {
  const Said said = tessera_program(small + " --list --json");
  REQUIRE(said.code == 0);
  const auto rows = said.json();
  const auto row_of = [&](const std::string& name) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row["name"] == name; });
    REQUIRE_MESSAGE(found != rows.end(), name);
    return *found;
  };
  CHECK(row_of("input")["shape"] == nlohmann::json{1, 3, 16, 16});
  CHECK(row_of("blocks.5.attn.scores")["shape"] == nlohmann::json{1, 12, 65, 65});
  CHECK(row_of("blocks.5.attn.scores")["op"] == "mask_diagonal");
  CHECK(row_of("blocks.5.attn.probabilities")["op"] == "softmax");
  CHECK(row_of("blocks.5.mlp.fc1.out")["op"] == "linear");
  CHECK(row_of("blocks.5.attn.proj.out")["aliases"] == nlohmann::json{"blocks.5.attn.out"});
  CHECK(row_of("blocks.5.attn.scale")["kind"] == "leaf");
  CHECK(row_of("logits")["aliases"] == nlohmann::json{"head.out"});
  CHECK(row_of("loss")["gradient"] == true);
}

TEST_CASE("tessera inspect: one head of one gradient as CSV and as JSON") {
  const std::string tensor = small + " --tensor blocks.5.attn.scores --grad";
  const Said csv = tessera_program(tensor + " --head 3 --csv");
  REQUIRE(csv.code == 0);
  CHECK(csv.out.starts_with("i0,i1,0,1,2,"));
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 1 + 65);
  const auto head = tessera_program(tensor + " --head 3 --json").json(),
             all = tessera_program(tensor + " --json").json();
  CHECK(head["shape"] == nlohmann::json{1, 65, 65});
  REQUIRE(all["values"].size() == 12 * 65 * 65);
  for (size_t i = 0; i < head["values"].size(); ++i)
    CHECK(head["values"][i] == all["values"][3 * 65 * 65 + i]);
}

TEST_CASE("tessera inspect: a head of what attention has beside its scores") {
  for (const auto& [value, shape] : std::map<std::string, nlohmann::json>{
           {"q", {1, 1, 65, 16}}, {"probabilities", {1, 65, 65}}, {"matmul.2", {1, 65, 16}}}) {
    const std::string tensor = small + " --json --tensor blocks.5.attn." + value;
    const auto head = tessera_program(tensor + " --head 2").json(), all = tessera_program(tensor).json();
    CHECK(head["shape"] == shape);
    const size_t count = head["values"].size();
    REQUIRE(all["values"].size() == 12 * count);
    for (size_t i = 0; i < count; ++i) CHECK(head["values"][i] == all["values"][2 * count + i]);
  }
}

TEST_CASE("tessera inspect: masked scores are -inf, and get no gradient") {
  const auto scores = tessera_program(small + " --tensor blocks.0.attn.scores --json").json()["values"];
  const auto slopes =
      tessera_program(small + " --tensor blocks.0.attn.matmul --grad --json").json()["values"];
  for (size_t i = 0; i < 65; ++i) {
    CHECK(scores[i * 65 + i] == "-inf");
    CHECK(slopes[i * 65 + i] == 0.0);
  }
}

TEST_CASE("tessera inspect: an export of a fixture has its gradients") {
  const TemporaryFolder folder;
  const Said said =
      tessera_program("inspect " + fixture("sl-vit") + " --dtype f64 --export " + (folder / "pass").string());
  REQUIRE_MESSAGE(said.code == 0, said.err);
  const TensorFile values = read_safetensors(folder / "pass" / "values.safetensors"),
                   gradients = read_safetensors(folder / "pass" / "gradients.safetensors"),
                   expected = read_safetensors(fixture("sl-vit"));
  CHECK(has(values, "blocks.1.attn.probabilities"));
  int64_t compared = 0;
  for (const auto& [name, grad] : expected.tensors) {
    if (!name.starts_with("grad.")) continue;
    const std::vector<double> ours = gradients.at(name.substr(5)).values(), theirs = grad.values();
    double largest = 0, error = 0;
    for (const double x : theirs) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < theirs.size(); ++i) error = std::max(error, std::abs(ours[i] - theirs[i]));
    CHECK_MESSAGE(error <= 1e-6 * largest + 1e-9, name);
    ++compared;
  }
  CHECK(compared > 20);
  const auto pass = nlohmann::json::parse(bytes_of(folder / "pass" / "pass.json"));
  CHECK(pass["steps"].back()["makes"] == "loss");
}

TEST_CASE("tessera inspect: what it refuses") {
  check_refused(small + " --tensor blocks.5.attn.score", "did you mean 'blocks.5.attn.scores'?");
  check_refused(small + " --tensor blocks.0.attn.scores --head 12", "has heads 0 to 11");
  for (const char* value :
       {"head.bias", "patch_embed.norm.out", "blocks.0.attn.permute.2", "blocks.0.attn.qkv.out"})
    check_refused(small + " --tensor " + value + " --head 0", "has no axis of heads; attention's scores");
  check_refused(small + " --target 3", "class 3; the model has 0 to 2");
  check_refused(small + " --head 1", "give it");
  check_refused(small + " --tensor loss --csv --json", "not both");
  check_refused("inspect sl-vitt", "did you mean 'sl-vit'?");
  check_refused("inspect dit-s-2 --image-size 16", "a picture has 3");
  check_refused("inspect vit --image-size 16 --time 3", "diffusion");
  check_refused("inspect dit-xt --image-size 16 --time 1000", "times 0 to 999");
  check_refused(small + " --only block.5 --list", "did you mean 'blocks.5'?");
  check_refused(small + " --without masc", "did you mean 'mask'?");
  check_refused(small + " --with l-vitt --out x.html", "did you mean 'l-vit'?");
  check_refused(small + " --with l-vit --list", "are about one pass");
  check_refused(small + " --json", "give one of them");
  check_refused(small + " --with l-vit --serve", "shows one pass");
  check_refused("inspect --lesson linear --only y", "a lesson is shown whole");
  check_refused("inspect " + fixture("spatial-prior"), "fixture of a part");
  check_refused(small + " --image missing.png", "missing.png");
}

namespace {

// A run of two epochs, and the pictures in its folder.
struct SmallRun {
  TemporaryFolder folder;
  std::string path = (folder / "run").string();

  explicit SmallRun(const std::string& arguments) {
    const Said said = tessera_program(
        "train --epochs 2 --batch 8 --set data.train_images=16 --set schedule.warmup_epochs=0"
        " --set data.validation_images=6 " +
        arguments + " --out " + path);
    REQUIRE_MESSAGE(said.code == 0, said.err);
  }
};

nlohmann::json pass_in(const std::filesystem::path& folder) {
  return nlohmann::json::parse(bytes_of(folder / "pass.json"));
}

double rms_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double each : x) sum += each * each;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

}  // namespace

TEST_CASE("tessera inspect: a run's own pictures, its optimizer's next step, and a second run beside it") {
  const SmallRun run(
      "--dataset shapes --image-size 16 --model sl-vit --set model.dim=16 --set model.depth=2"),
      other("--dataset shapes --image-size 16 --model vit --set model.dim=24 --set model.depth=1");
  const std::string to = (run.folder / "pass").string();
  const Said said = tessera_program("inspect " + run.path + " --index 3 --with " + other.path +
                                    " --without mask,shift --export " + to);
  REQUIRE_MESSAGE(said.code == 0, said.err);
  const auto pass = pass_in(to);
  CHECK(pass["asks"] == "the cross entropy of class 3 (star)");
  CHECK(pass["optimizer"].get<std::string>().find("the run's AdamW") == 0);
  CHECK(pass["learning_rate"]["highest"] == 0.003);
  CHECK(pass_in(to + "/with-run")["asks"] == pass["asks"]);
  CHECK(pass_in(to + "/without-mask")["without"] == "mask");
  CHECK(has(read_safetensors(to + "/without-shift/values.safetensors"), "blocks.1.attn.scale"));
  CHECK(read_safetensors(to + "/with-run/values.safetensors").at("blocks.0.out").dim(2) == 24);

  // AdamW's step from the moments in the run's state, worked out in double.
  const TensorFile state = read_safetensors(run.path + "/state.safetensors");
  const std::string name = "blocks.1.attn.proj.weight";
  const std::vector<double> p = read_safetensors(to + "/values.safetensors").at(name).values(),
                            g = read_safetensors(to + "/gradients.safetensors").at(name).values(),
                            m = state.at("optimizer.m." + name).values(),
                            v = state.at("optimizer.v." + name).values();
  const auto t = static_cast<double>(state.at("optimizer.step." + name).integers()[0] + 1);
  const auto config = nlohmann::json::parse(bytes_of(std::filesystem::path(run.path) / "config.json"));
  const double decay = config["optimizer"]["weight_decay"],
               lr = nlohmann::json::parse(state.metadata.at("position"))["lr"];
  CHECK(pass["learning_rate"]["now"] == lr);
  std::vector<double> change(p.size());
  for (size_t i = 0; i < p.size(); ++i) {
    const double mean = (0.9 * m[i] + 0.1 * g[i]) / (1 - std::pow(0.9, t)),
                 square = (0.999 * v[i] + 0.001 * g[i] * g[i]) / (1 - std::pow(0.999, t));
    change[i] = -lr * (decay * p[i] + mean / (std::sqrt(square) + 1e-8));
  }
  CHECK(pass["updates"][name]["weight_rms"].get<double>() == doctest::Approx(rms_of(p)).epsilon(1e-9));
  CHECK(pass["updates"][name]["update_rms"].get<double>() == doctest::Approx(rms_of(change)).epsilon(1e-3));

  check_refused("inspect " + run.path + " --index 6", "shapes has 6 validation pictures");
  check_refused("inspect " + run.path + " --dataset cifar10", "cifar10");
  check_refused("inspect " + run.path + " --image " + run.path + "/config.json", "not a JPEG, PNG or BMP");
  check_refused("inspect " + run.path + " --with " + run.folder.path().string(), "holds neither");
}

TEST_CASE("tessera inspect: runs of a segmenter and of a diffusion model") {
  const SmallRun diffusion(
      "--dataset shapes --image-size 16 --model dit-xt --set model.dim=16 --set model.depth=1 "
      "--set model.attention.heads=2 --set model.attention.head_dim=8"),
      segmenter(
          "--dataset shapes-seg --image-size 32 --model lvvit-s-seg --set model.backbone.depth=4 --set "
          "model.backbone.dim=16 --set model.backbone.attention.heads=2 --set "
          "model.backbone.attention.head_dim=8 "
          "--set model.backbone.tokenizer.channels=8 --set model.decoder.out_blocks=[0,1,2,3] --set "
          "model.decoder.channels=8 --set model.decoder.top_channels=8 --set model.aux.channels=8");
  const TemporaryFolder folder;
  const auto asks = [&](const std::string& arguments) {
    const Said said = tessera_program("inspect " + arguments + " --export " + (folder / "pass").string());
    REQUIRE_MESSAGE(said.code == 0, said.err);
    return pass_in(folder / "pass")["asks"].get<std::string>();
  };
  CHECK(asks(diffusion.path + " --index 2 --time 10") ==
        "the noise in the picture at time 10 of 1000, told class 2 (triangle)");
  CHECK(has(read_safetensors(folder / "pass" / "values.safetensors"), "noise"));
  CHECK(asks(segmenter.path) == "the mean cross entropy of each pixel's own class");
  CHECK(asks(segmenter.path + " --target 5") == "the mean cross entropy of class 5 (ring) at every pixel");
}

TEST_CASE("tessera inspect: every tensor of the list, with and without a part or a term, can be printed") {
  const std::string model = "inspect sl-vit --image-size 16 --classes 3 ";
  for (const char* choice :
       {"--only blocks.8,head", "--without shift --only patch_embed", "--dtype f64 --only norm"}) {
    CAPTURE(choice);
    const auto rows = tessera_program(model + choice + " --list --json").json();
    REQUIRE(rows.size() > 3);
    for (const auto& row : rows) {
      const std::string name = row["name"];
      CAPTURE(name);
      CHECK_FALSE(name.starts_with("blocks.7.attn.scores"));
      if (name == "norm.out" || name == "logits") {
        const auto x = tessera_program(model + choice + " --tensor " + name + " --grad --json").json();
        CHECK(x["shape"] == row["shape"]);
        CHECK(x["dtype"] == row["dtype"]);
      }
    }
  }
  const auto whole = tessera_program(model + "--tensor logits --json").json(),
             without = tessera_program(model + "--without shift --tensor logits --json").json();
  CHECK(whole["values"] != without["values"]);
}

TEST_CASE("tessera inspect --lesson: the list in order, and each lesson as a model is inspected") {
  const TemporaryFolder folder;
  const auto rows = tessera_program("inspect --lesson --json").json();
  REQUIRE(rows.size() == 12);
  CHECK(rows.front()["name"] == "chain-rule");
  CHECK(rows.back()["name"] == "block");
  const Said listed = tessera_program("inspect --lesson");
  CHECK(listed.out.find("shifted-patches") != std::string::npos);
  CHECK(tessera_program("inspect --lesson chain-rule --tensor a --grad").out == "0\n12\n");
  CHECK(tessera_program("inspect --lesson chain-rule --dtype f64 --list --json").json()[0]["dtype"] == "f64");
  const std::string page = folder / "page.html";
  CHECK(tessera_program("inspect --lesson prior --out " + page).code == 0);
  CHECK(bytes_of(page).find("\"kind\":\"lesson\"") != std::string::npos);
  const Said exported = tessera_program("inspect --lesson block --export " + (folder / "block").string());
  CHECK(exported.code == 0);
  CHECK(has(read_safetensors(folder / "block" / "gradients.safetensors"), "attn.probabilities"));
  check_refused("inspect --lesson linaer", "did you mean 'linear'?");
  check_refused("inspect sl-vit --lesson linear", "not both");
  check_refused("inspect", "is wanted");
}
