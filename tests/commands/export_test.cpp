#include <doctest/doctest.h>

#include <set>

#include "apps/exporting/onnx_ops.h"
#include "engine/io/protobuf.h"
#include "engine/io/safetensors.h"
#include "engine/ops/catalog.h"
#include "tests/commands/program.h"

using namespace tessera;

TEST_CASE("export: each op of the catalog has operators, but for those of the loss and the fused attention") {
  const std::set<std::string> without{"cross_entropy", "attention"};
  for (const Op& op : catalog) {
    const std::string name(op.name);
    CAPTURE(name);
    CHECK(has_onnx(name) != without.contains(name));
  }
}

TEST_CASE("export: a message has the bytes of the protobuf documentation") {
  CHECK(ProtoMessage().number(1, 150).bytes() == std::string("\x08\x96\x01"));
  CHECK(ProtoMessage().text(2, "testing").bytes() == std::string("\x12\x07testing"));
  CHECK(ProtoMessage().message(3, ProtoMessage().number(1, 150)).bytes() ==
        std::string("\x1a\x03\x08\x96\x01"));
  CHECK(ProtoMessage().number(1, -2).bytes() == std::string("\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK(ProtoMessage().real(2, 1.5f).bytes() == std::string("\x15\x00\x00\xc0\x3f", 5));
}

TEST_CASE("export: safetensors have the facts and the weights, and predict reads them") {
  const TemporaryFolder folder;
  const std::string file = folder / "vit.safetensors", sample = folder / "sample.safetensors";
  const std::string arguments =
      "export vit --image-size 16 --classes 3 --out " + file + " --sample " + sample;
  const Said said = tessera_program(arguments);
  REQUIRE_MESSAGE(said.code == 0, said.err);
  CHECK(said.out.find("vit, 3 classes, images of 16 x 16 pixels") != std::string::npos);
  const TensorFile read = read_safetensors(file);
  CHECK(read.metadata.at("classes") == R"(["0","1","2"])");
  CHECK(read.metadata.at("image_size") == "16");
  CHECK(read.metadata.at("architecture") == "vit");
  CHECK(read.at("head.weight").shape() == Shape{3, 192});
  CHECK(read_safetensors(sample).at("logits").shape() == Shape{3, 3});
  const Said shown = tessera_program("summary " + file + " --json");
  REQUIRE_MESSAGE(shown.code == 0, shown.err);
  CHECK(shown.json().at("model").at("image_size") == 16);
}

TEST_CASE("export: the same model makes the same bytes, with inputs, outputs and classes by name") {
  const TemporaryFolder folder;
  for (const char* name : {"a.onnx", "b.onnx"}) {
    const Said said =
        tessera_program("export " + fixture("sl-vit") + " --format onnx --out " + (folder / name).string());
    REQUIRE_MESSAGE(said.code == 0, said.err);
  }
  const std::string bytes = bytes_of(folder / "a.onnx");
  CHECK(bytes == bytes_of(folder / "b.onnx"));
  for (const char* part : {"images", "logits", "batch", "LayerNormalization", "blocks.0.attn.qkv.weight",
                           "deviation", R"(["0","1","2","3","4","5","6","7","8","9"])"})
    CHECK_MESSAGE(bytes.find(part) != std::string::npos, part);
}

TEST_CASE("what a command writes is never a file of a run, nor one that cannot be written") {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder / "run";
  std::filesystem::create_directory(run);
  for (const char* name : {"config.json", "events.jsonl", "best.safetensors"}) put(run / name, "kept");
  const std::string best = (run / "best.safetensors").string(), none = (folder / "none" / "x.png").string();
  for (const std::string& arguments :
       {"export vit --format onnx --out " + best, "export vit --out x.safetensors --sample " + best,
        "export vit --format timm --out " + run.string(), "report x --out " + best,
        "diagnose " + run.string() + " --out " + best, "eval x --csv " + best,
        "predict x y.png --csv " + best, "inspect vit --out " + best, "bench table --no-speed --out " + best})
    check_refused(arguments, "of a training run");
  for (const std::string& arguments :
       {"eval x --csv " + none, "eval x --images-csv " + none, "data show shapes --out " + none})
    check_refused(arguments, "x.png: cannot make a file in its folder: No such file or directory");
  CHECK(tessera_program("data show shapes --out " + none).out.empty());
  for (const auto& entry : std::filesystem::directory_iterator(run)) CHECK(bytes_of(entry) == "kept");
}

TEST_CASE("an option that the model answers itself is refused, not dropped") {
  const TemporaryFolder folder;
  const std::string out = " --out " + (folder / "out").string(), vit = fixture("vit");
  put(folder / "vit.json",
      tessera_program("summary vit --image-size 16 --classes 3 --json").json()["model"].dump());
  const std::string config = (folder / "vit.json").string();
  for (const char* option : {"--image-size 64", "--classes 5", "--seed 3"})
    check_refused("export " + vit + " " + option + out, "vit.safetensors says itself what --");
  check_refused("export " + config + " --classes 5" + out, "vit.json says itself what --classes would");
  CHECK(tessera_program("export " + config + " --seed 3" + out).code == 0);
  check_refused("inspect " + vit + " --list --image-size 64",
                "says itself what --image-size would; leave it out");
  check_refused("inspect --lesson chain-rule --classes 4", "--lesson says itself what --classes would");
}

TEST_CASE("of two options that exclude each other neither is dropped") {
  check_refused("keys --json --markdown", "--markdown excludes --json");
  check_refused("runs --csv --json", "--csv excludes --json");
  check_refused("inspect vit --list --tensor input", "--list or --tensor NAME, not both");
  for (const char* option : {"--images 3", "--split train", "--data x"})
    check_refused(std::string("diagnose x --pictures y.png ") + option, " excludes --pictures");
  for (const char* command :
       {"train --dataset shapes", "data info shapes", "data check shapes", "data show shapes --out x.png",
        "bench loader --dataset shapes", "inspect vit --image-size 32 --dataset shapes"})
    check_refused(std::string(command) + " --data /nope", "leave out --data (data.dir) /nope");
}

TEST_CASE("export: what cannot be written is refused with the reason") {
  const TemporaryFolder folder;
  const std::string out = " --out " + (folder / "out").string();
  check_refused("export sl-vit --format timm" + out, "timm's attention has no learned scale (LSA)");
  check_refused("export s-vit --format timm" + out, "timm's patches are not shifted (SPT)");
  check_refused("export rmt-xt --format timm" + out, "has no network like rmt");
  check_refused("export vit --format caffe" + out, "wanted safetensors, onnx or timm");
  check_refused("export nosuch" + out, "nosuch");
  check_refused("export " + fixture("vit") + " --out " + fixture("vit"), "is the model itself");
}
