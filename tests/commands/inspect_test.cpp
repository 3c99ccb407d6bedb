#include <doctest/doctest.h>

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
  check_refused(small + " --tensor head.bias --head 0", "has no axis of heads");
  check_refused(small + " --target 3", "class 3; the model has 0 to 2");
  check_refused(small + " --head 1", "give it");
  check_refused(small + " --tensor loss --csv --json", "not both");
  check_refused("inspect sl-vitt", "did you mean 'sl-vit'?");
  check_refused("inspect dit-xt --image-size 16", "is no classifier");
  check_refused("inspect " + fixture("spatial-prior"), "fixture of a part");
  check_refused(small + " --image missing.png", "missing.png");
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
