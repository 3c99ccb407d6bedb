#include <doctest/doctest.h>

#include <set>

#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("tessera summary: every module once, and what they add up to") {
  const Said said = tessera_program("summary sl-vit --image-size 64 --classes 200 --json");
  REQUIRE(said.code == 0);
  const nlohmann::json summary = said.json();
  int64_t parameters = 0, macs = 0;
  std::set<std::string> names;
  for (const auto& row : summary.at("layers")) {
    parameters += row.at("parameters").get<int64_t>();
    macs += row.at("macs").get<int64_t>();
    CHECK(names.insert(row.at("name")).second);
  }
  for (const auto& model : tessera_program("models --image-size 64 --classes 200 --json").json())
    if (model.at("name") == "sl-vit") {
      CHECK(parameters == model.at("parameters"));
      CHECK(macs == model.at("macs"));
    }
  CHECK(summary.at("total").at("parameters") == parameters);
  CHECK(summary.at("total").at("macs") == macs);
  CHECK(names.contains("blocks.8.attn.qkv"));
  CHECK(names.contains("head"));
  CHECK(summary.at("layers").back().at("output") == nlohmann::json({1, 200}));
}

TEST_CASE("tessera summary: the receptive field of a token") {
  for (const auto& [model, side] : {std::pair{"vit --image-size 224", 28},
                                    {"vit --image-size 32", 4},
                                    {"sl-vit --image-size 32", 8},
                                    {"sl-vit --image-size 224", 56},
                                    {"sp-vit-t --image-size 224", 29},
                                    {"rmt-xt --image-size 32", 9}}) {
    CAPTURE(model);
    const Said said = tessera_program(std::string("summary --json ") + model);
    REQUIRE(said.code == 0);
    CHECK(said.json().at("receptive_field") == side);
  }
  CHECK(tessera_program("summary vit").out.find("4 x 4 pixels, its receptive field") != std::string::npos);
  CHECK(tessera_program("summary --json t2t").json().at("receptive_field").is_null());
  CHECK(tessera_program("summary --json resnet56").json().at("receptive_field").is_null());
}

TEST_CASE("tessera summary: the memory of a training step, of as many images as are asked for") {
  const auto summary = [](const std::string& more) {
    const Said said = tessera_program("summary sl-swin --image-size 32 --json" + more);
    REQUIRE(said.code == 0);
    return said.json();
  };
  const nlohmann::json one = summary(""), eight = summary(" --batch 8");
  for (const auto& each : {one, eight}) {
    const auto& memory = each.at("memory");
    CHECK(memory.at("weights") >= 4 * each.at("total").at("parameters").get<int64_t>());
    CHECK(memory.at("total") == memory.at("weights").get<int64_t>() + memory.at("gradients").get<int64_t>() +
                                    memory.at("optimizer").get<int64_t>() +
                                    memory.at("activations").get<int64_t>());
    CHECK(memory.at("activations") > each.at("total").at("activation_bytes"));
  }
  CHECK(one.at("memory").at("weights") == eight.at("memory").at("weights"));
  CHECK(one.at("total").at("macs") == eight.at("total").at("macs"));
  // What forward leaves is nearly all; at one image the sums of weight gradients are a part, too.
  const auto left = [](const nlohmann::json& each) {
    return each.at("total").at("activation_bytes").get<double>();
  };
  const auto held = [](const nlohmann::json& each) {
    return each.at("memory").at("activations").get<double>();
  };
  CHECK(left(eight) == doctest::Approx(held(eight)).epsilon(0.1));
  CHECK(held(eight) - held(one) > 6 * left(one));
}

TEST_CASE("tessera summary: of a config and of a checkpoint") {
  const Said said = tessera_program("summary " + fixture("sl-vit"));
  CHECK(said.code == 0);
  CHECK(said.out.find("blocks.1.mlp.fc2") != std::string::npos);
  CHECK(said.out.find("total") != std::string::npos);

  const TemporaryFolder folder;
  const nlohmann::json config =
      tessera_program("summary " + fixture("sl-vit") + " --json").json().at("model");
  put(folder / "model.json", config.dump());
  put(folder / "run.json", nlohmann::json{{"model", config}, {"epochs", 3}}.dump());
  for (const char* name : {"model.json", "run.json"})
    CHECK(tessera_program("summary " + (folder / name).string()).out == said.out);
}

TEST_CASE("a folder is no model, and that of a run names the file that is one") {
  const TemporaryFolder folder;
  const std::string run = folder.path().string();
  check_refused("summary " + run,
                run + ": is a folder, and a model is a preset, a config (.json) or a checkpoint");
  put(folder / "last.safetensors", "");
  check_refused("gradcheck --model " + run, "; give " + run + "/last.safetensors");
  put(folder / "best.safetensors", "");
  check_refused("bench train --model " + run, "; give " + run + "/best.safetensors");
}

TEST_CASE("tessera summary: what it refuses") {
  const TemporaryFolder folder;
  put(folder / "broken.json", "{\"arch\": ");
  put(folder / "other.json", "{\"epochs\": 3}");
  struct {
    std::string arguments, complaint;
  } cases[] = {
      {"sl-vitt", "did you mean 'sl-vit'?"},         {"none.json", "none.json"},
      {(folder / "broken.json").string(), "line 1"}, {(folder / "other.json").string(), "no \"arch\""},
      {"sl-vit --image-size 30", "multiple of 8"},   {fixture("sl-vit") + " --classes 10", "leave it out"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.arguments);
    const Said said = tessera_program("summary " + each.arguments);
    CAPTURE(said.err);
    CHECK(said.code == 2);
    CHECK(said.complains_of(each.complaint));
  }
}

TEST_CASE("tessera summary: a segmenter has layers at one image, and a training step from two on") {
  const auto summary = [](const std::string& more) {
    const Said said = tessera_program("summary lvvit-s-seg --image-size 32 --json" + more);
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    return said.json();
  };
  const nlohmann::json one = summary("");
  CHECK(one.at("layers").size() > 100);
  CHECK(one.at("memory").at("reason").get<std::string>().find("train with more images") != std::string::npos);
  CHECK(summary(" --batch 2").at("memory").at("total") > 0);
  const Said text = tessera_program("summary lvvit-s-seg --image-size 32");
  CHECK(text.code == 0);
  CHECK(text.out.find("No training step has so many images at once") != std::string::npos);
}
