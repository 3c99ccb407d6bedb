#include "apps/inspector/proof.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "apps/reporting/proofs_table.h"
#include "engine/autograd/tape.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "models/presets.h"
#include "tests/commands/running.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

size_t place_of(const PassRecord& record, const std::string& name) {
  for (size_t i = 0; i < record.values().size(); ++i) {
    const PassRecord::Value& value = record.values()[i];
    if (value.name == name || std::count(value.aliases.begin(), value.aliases.end(), name) > 0) return i;
  }
  FAIL("no value " << name);
  return 0;
}

// sum(relu(x)^2 * c), whose slopes are known: 2 c relu(x), and c relu(x)^2's for the factor.
struct Program {
  Tensor x = Tensor::from({1.5, -2, 3, 0}, {4}, DType::f64).require_grad();
  Tensor c = Tensor::from({1, 2, -1, 5}, {4}, DType::f64).require_grad();

  Tensor loss() const { return sum(square(relu(x)) * c); }
};

Experiment experiment_of_program() {
  const auto program = std::make_shared<Program>();
  const auto known = [program](const Tensor& loss) {
    return NamedTensors{{"x", program->x}, {"c", program->c}, {"loss", loss}};
  };
  Tape tape;
  tape.keep_all();
  const Tensor loss = program->loss();
  tape.backward(loss);
  return {PassRecord(tape, known(loss)),
          [program] {
            Tape again;
            again.keep_all();
            return program->loss().item();
          },
          [program](const std::string& name) { return name == "x" ? &program->x : &program->c; }};
}

// An op whose backward is wrong by a part in a thousand.
Experiment with_wrong_gradient(const std::string& name) {
  Experiment experiment = experiment_of_program();
  const PassRecord::Value& value = experiment.record.values()[place_of(experiment.record, name)];
  value.gradient.data<double>()[2] *= 1.001;
  return experiment;
}

}  // namespace

TEST_CASE("proofs: of a leaf, of a computed value, at the kink of a relu, against slopes known by hand") {
  const Prover prover(experiment_of_program());
  const auto proof_of = [&](const char* name, int64_t cell) {
    return prover.prove(place_of(prover.record(), name), cell);
  };
  const Proof leaf = proof_of("x", 2);
  CHECK(leaf.analytic == -6);
  CHECK(leaf.difference == doctest::Approx(-6).epsilon(1e-9));
  CHECK(leaf.agrees());
  CHECK(leaf.step == doctest::Approx(3e-3));
  CHECK(proof_of("relu", 0).difference == doctest::Approx(3).epsilon(1e-9));
  CHECK(proof_of("c", 0).difference == doctest::Approx(2.25).epsilon(1e-9));
  CHECK(proof_of("square", 1).difference == doctest::Approx(2).epsilon(1e-9));
  CHECK(proof_of("x", 1).difference == 0);  // the relu's dead half
  // At the kink of relu(x)^2 both sides go to 0, with h.
  CHECK(proof_of("x", 3).analytic == 0);
  CHECK(std::abs(proof_of("x", 3).difference) < 1e-5);
  CHECK(proof_of("loss", 0).difference == doctest::Approx(1));
}

TEST_CASE("proofs: the moved number is put back, also where the program fails") {
  const Experiment experiment = experiment_of_program();
  const double before = experiment.loss();
  const Prover prover(experiment);
  for (size_t place = 0; place < prover.record().values().size(); ++place) prover.prove(place, 0);
  CHECK(experiment.loss() == before);
}

TEST_CASE("proofs: a gradient that is wrong by a part in a thousand is found wrong") {
  for (const char* name : {"x", "relu", "c"}) {
    const Prover prover(with_wrong_gradient(name));
    const Proof proof = prover.prove(place_of(prover.record(), name), 2);
    CHECK_FALSE(proof.agrees());
    CHECK(proof.error == doctest::Approx(1e-3).epsilon(1e-2));
    CHECK(json_of(proof)["ok"] == false);
  }
}

TEST_CASE("proofs: a small loss is rounded by what it is the difference of, and no further") {
  const auto x = std::make_shared<Tensor>(Tensor::from({0.5, 0.25}, {2}, DType::f64).require_grad());
  const auto far = std::make_shared<Tensor>(Tensor::from({1e10}, {1}, DType::f64));
  const auto loss = [=] { return sum((*x + *far) - *far) + sum(square(*x)); };
  Tape tape;
  tape.keep_all();
  const Tensor end = loss();
  tape.backward(end);
  Experiment experiment{PassRecord(tape, {{"x", *x}, {"loss", end}}),
                        [=] {
                          Tape again;
                          again.keep_all();
                          return loss().item();
                        },
                        [=](const std::string&) { return x.get(); }};
  const size_t place = place_of(experiment.record, "x");
  const Proof right = Prover(experiment).prove(place, 0);
  CHECK(right.analytic == 2);
  CHECK(right.error > 1e-5);  // a double near 1e10 is a multiple of 2e-6
  CHECK(right.agrees());
  experiment.record.values()[place].gradient.data<double>()[0] = 2.1;
  CHECK_FALSE(Prover(experiment).prove(place, 0).agrees());
}

TEST_CASE("proofs: the largest cell and others, each once, the same for the same seed") {
  const Tensor gradient = Tensor::from({1, -9, 3, 0, 2, 5}, {6});
  const auto cells = cells_to_prove(gradient, 4, 7);
  CHECK(cells.size() == 4);
  CHECK(cells[0] == 1);
  CHECK(cells == cells_to_prove(gradient, 4, 7));
  CHECK(cells != cells_to_prove(gradient, 4, 8));
  auto all = cells_to_prove(gradient, 99, 7);
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(cells_to_prove(gradient, 0, 7).empty());
}

TEST_CASE("proofs: every kind of value of a model in f32 and f64, equal to a model moved by hand") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const PassInputs inputs = inputs_of_fixture(fixture("sl-vit"), dtype);
    const Prover prover(experiment_of(inputs));
    for (const char* name : {"input", "blocks.1.attn.scores", "blocks.0.attn.probabilities",
                             "blocks.0.mlp.fc1.out", "blocks.0.attn.qkv.weight", "norm.bias"}) {
      CAPTURE(name);
      const size_t place = place_of(prover.record(), name);
      for (const int64_t cell : cells_to_prove(prover.record().values()[place].gradient, 3, 1))
        CHECK(prover.prove(place, cell).agrees());
    }
    // Another path: the weight of a model of one's own is moved, and the loss taken without a tape.
    PassInputs own = inputs_of_fixture(fixture("sl-vit"), DType::f64);
    if (dtype == DType::f32) own.model = copy_as(copy_as(own.model, DType::f32), DType::f64);
    if (dtype == DType::f32)
      for (auto& [key, tensor] : own.inputs)
        if (is_float(tensor.dtype())) tensor = tensor.to(DType::f32).to(DType::f64);
    const Tensor& weight = *own.model.parameters.find("blocks.0.attn.qkv.weight");
    double& x = weight.data<double>()[5];
    const double start = x;
    const auto loss = [&](double moved) {
      x = moved;
      Pass state{.training = false, .random = Random(0), .drop = false};
      const double found = entry(own.model.evaluate(own.inputs, state), "loss").item();
      x = start;
      return found;
    };
    const double slope = (loss(start + 1e-5) - loss(start - 1e-5)) / 2e-5;
    const Proof proof = prover.prove(place_of(prover.record(), "blocks.0.attn.qkv.weight"), 5);
    CHECK(proof.difference == doctest::Approx(slope).epsilon(1e-6));
  }
}

TEST_CASE(
    "proofs: a run without the ops before the moved number gives the loss of the whole run, to the bit") {
  for (const char* name : {"sl-vit", "sl-swin", "sl-pit", "sl-cait", "sl-t2t", "sp-vit", "rmt", "sdt",
                           "lvvit", "dit-sigma", "lvvit-dense", "resnet", "efficientnet", "segment"}) {
    CAPTURE(name);
    const Experiment experiment = experiment_of(inputs_of_fixture(fixture(name), DType::f64));
    const Course course(experiment);
    poison_new_storage(true);  // whatever is neither computed nor put back is not a number
    int64_t runs = 0;
    for (size_t place = 0; place < experiment.record.values().size(); place += 3) {
      const PassRecord::Value& value = experiment.record.values()[place];
      if (value.kind == PassRecord::Kind::constant) continue;
      const int64_t cell = value.value.elements() / 2;
      const double behind = moved_loss(experiment, course, Ops::behind, place, cell, 0.125),
                   all = moved_loss(experiment, course, Ops::all, place, cell, 0.125);
      CHECK_MESSAGE(behind == all, (value.name + " of " + name));
      ++runs;
    }
    poison_new_storage(false);
    CHECK(runs > 10);
  }
}

TEST_CASE("proofs: of a whole pass, the same on any number of threads; all of them agree") {
  const PassInputs inputs = inputs_of_fixture(fixture("sl-vit"), DType::f32);
  const InspectedPass pass = inspect_pass(inputs);
  const auto make = [&] { return experiment_of(inputs); };
  const Json proofs = proofs_of(make, 2);
  const int before = threads();
  set_threads(1);
  CHECK(proofs_of(make, 2) == proofs);
  set_threads(before);
  size_t with_gradient = 0;
  for (const PassRecord::Value& value : pass.record.values()) with_gradient += value.gradient.defined();
  CHECK(proofs.size() == with_gradient);
  CHECK(summary_of_proofs(pass.record, proofs).ends_with(" proofs, all right"));
  size_t count = 0;
  for (const auto& [place, cells] : proofs.items()) {
    count += cells.size();
    const PassRecord::Value& value = pass.record.values()[std::stoul(place)];
    for (const Json& proof : cells) {
      // What is proved in double is what the pass in f32 shows.
      const double shown = value.gradient.values()[proof["cell"].get<size_t>()];
      CHECK(std::abs(shown - proof["analytic"].get<double>()) < 1e-4 * std::max(1e-2, std::abs(shown)));
    }
  }
  CHECK(count > 150);
  Json wrong = proofs;
  wrong.begin()->at(0)["ok"] = false;
  CHECK(summary_of_proofs(pass.record, wrong).find(" 1 WRONG") != std::string::npos);
}

TEST_CASE("proofs: four cells of a small model unless somebody says, none of a large one") {
  const auto record = [] {  // of 300 gradients
    Tape tape;
    tape.keep_all();
    const Tensor x = Tensor::from({1}, {1}).require_grad();
    Tensor y = x;
    for (int i = 0; i < 299; ++i) y = 1.0 * y;
    tape.backward(y);
    return PassRecord(tape, {{"x", x}});
  }();
  const auto usual = [&](const char* name, int64_t size) {
    PassInputs inputs;
    inputs.model.config = preset(name, size, 10);
    inputs.inputs["input"] = Tensor::zeros({1, 3, size, size});
    return usual_proofs(inputs, record);
  };
  CHECK(usual("sl-vit", 32) == 4);
  CHECK(usual("dit-b-2", 32) == 0);
}

TEST_CASE("proofs: errors name the value") {
  const Prover prover(experiment_of(inputs_of_fixture(fixture("sl-vit"), DType::f64)));
  CHECK(error_of([&] { prover.prove(9999, 0); }).find("value 9999") != std::string::npos);
  CHECK(error_of([&] { prover.prove(0, -1); }).find("cell -1") != std::string::npos);
}

TEST_CASE("inspect --proofs: in the listing, in the page, and what it refuses") {
  const Said said = tessera_program("inspect " + fixture("sl-vit") + " --list --proofs 1");
  CHECK(said.code == 0);
  CHECK(said.out.find("blocks.1.attn.scores") != std::string::npos);
  CHECK(said.out.find("proofs, all right") != std::string::npos);
  const Json rows =
      Json::parse(tessera_program("inspect " + fixture("sl-vit") + " --list --proofs 2 --json").out);
  const auto scores = std::find_if(rows.begin(), rows.end(),
                                   [](const Json& row) { return row["name"] == "blocks.1.attn.scores"; });
  REQUIRE(scores != rows.end());
  REQUIRE((*scores)["proofs"].size() == 2);
  for (const char* key : {"cell", "analytic", "difference", "error", "step", "ok"})
    CHECK_MESSAGE((*scores)["proofs"][0].contains(key), key);
  check_refused("inspect " + fixture("sl-vit") + " --proofs 2 --tensor loss", "--list");
  check_refused("inspect " + fixture("sl-vit") + " --proofs -1", "--proofs");
}
