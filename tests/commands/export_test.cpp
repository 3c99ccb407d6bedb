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
