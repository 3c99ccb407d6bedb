#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "engine/cpu/processor.h"
#include "tests/commands/program.h"
#include "tests/cuda.h"

using namespace tessera;

TEST_CASE("tessera bench train measures itself against the machine") {
  const Said said = tessera_program(
      "bench train --model sl-vit --image-size 16 --classes 4 --batch 8 --steps 2 --warmup 1 --profile "
      "--json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const nlohmann::json row = said.json();
  CHECK(row.at("precision") == "f32");
  for (const char* key : {"images_per_second", "gflops", "gemm_peak_gflops", "share_of_peak",
                          "peak_memory_bytes", "forward_seconds", "backward_seconds", "optimizer_seconds"}) {
    CAPTURE(key);
    CHECK(row.at(key) > 0);
  }
  CHECK(row.at("share_of_peak").get<double>() ==
        doctest::Approx(row.at("gflops").get<double>() / row.at("gemm_peak_gflops").get<double>()));
  double shares = 0;
  bool linear = false;
  for (const auto& each : row.at("operations")) {
    shares += each.at("share").get<double>();
    if (each.at("op") != "linear") continue;
    linear = true;
    const double seconds =
        each.at("forward_seconds").get<double>() + each.at("backward_seconds").get<double>();
    CHECK(each.at("floor_share").get<double>() ==
          doctest::Approx(each.at("floor_seconds").get<double>() / seconds));
  }
  CHECK(row.at("memory_gbytes_per_second") > 0);
  CHECK(shares == doctest::Approx(1));
  CHECK(linear);
}

TEST_CASE("tessera bench train --presets: a row a preset, or the reason why it has none") {
  const Said said = tessera_program(
      "bench train --presets resnet56,dit-s-2,swin --image-size 24 --classes 4 --batch 2 --steps "
      "1"
      " --warmup 0 --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const nlohmann::json rows = said.json();
  REQUIRE(rows.size() == 3);
  CHECK(said.err.find("1/3 resnet56: ") != std::string::npos);
  for (const size_t i : {0, 1}) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i]["model"] == std::vector{"resnet56", "dit-s-2"}[i]);
    for (const char* key :
         {"images_per_second", "step_seconds", "gflops", "share_of_peak", "peak_memory_bytes"})
      CHECK(rows[i][key] > 0);
  }
  CHECK(rows[2]["model"] == "swin");
  CHECK(rows[2]["reason"].get<std::string>().find("24") != std::string::npos);
  CHECK(!rows[2].contains("images_per_second"));
}

TEST_CASE("tessera bench train and infer say in what they compute") {
  const std::string of = "--model vit --image-size 16 --classes 4 --batch 4 --steps 1 --warmup 0";
  CHECK(tessera_program("bench train --precision bf16 " + of).out.find("precision      bf16\n") !=
        std::string::npos);
  CHECK(tessera_program("bench train --json --precision bf16 " + of).json()["precision"] == "bf16");
  CHECK(tessera_program("bench infer --dtype bf16 " + of).out.find("type           bf16\n") !=
        std::string::npos);
}

TEST_CASE("tessera bench train: a segmenter's labels are masks") {
  const Said said =
      tessera_program("bench train --model " + fixture("segment") + " --batch 2 --steps 1 --warmup 0 --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json()["images_per_second"] > 0);
}

TEST_CASE("tessera bench infer, loader and gemm") {
  const Said infer =
      tessera_program("bench infer --model vit --image-size 16 --classes 4 --batch 8 --steps 2 --json");
  REQUIRE(infer.code == 0);
  const nlohmann::json row = infer.json();
  CHECK(row.at("images_per_second").get<double>() ==
        doctest::Approx(8 / row.at("batch_seconds").get<double>()));
  CHECK(row.at("best_batch_seconds").get<double>() <= row.at("batch_seconds").get<double>());
  CHECK(row.at("share_of_peak").get<double>() ==
        doctest::Approx(row.at("gflops").get<double>() / row.at("gemm_peak_gflops").get<double>()));

  const Said loader = tessera_program("bench loader --dataset shapes --seconds 0.2 --batch 16 --json");
  CAPTURE(loader.err);
  REQUIRE(loader.code == 0);
  CHECK(loader.json().at("images_per_second") > 0);
  CHECK(loader.json().at("images").get<int64_t>() % 16 == 0);

  const Said gemm = tessera_program("bench gemm --threads 1 --json");
  REQUIRE(gemm.code == 0);
  const nlohmann::json rows = gemm.json();
  REQUIRE(rows.size() == 5);  // OpenBLAS and linear in f32 and f64, linear in bf16
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].dump());
    CHECK(rows[i].at("dtype") == (i < 2 ? "f32" : i < 4 ? "f64" : "bf16"));
    CHECK(rows[i].at("kernels").get<std::string>().starts_with("Tessera's linear") == (i % 2 == 1 || i == 4));
    CHECK(rows[i].at("threads") == 1);
    CHECK(rows[i].at("gflops") > 0);
    CHECK(rows[i].at("gflops_per_thread") == rows[i].at("gflops"));
  }
  const std::string bf16 = rows[4].at("kernels").get<std::string>();
  CHECK((bf16.ends_with("-BF16") || bf16.ends_with("widened to f32")));
}

TEST_CASE(
    "tessera bench gemm says in a line where bf16 has no instructions, and refuses an unknown processor") {
  if (processor() >= Processor::avx2) {
    const Said said = tessera_program("bench gemm --threads 1", "TESSERA_CPU=avx2");
    REQUIRE(said.code == 0);
    CHECK(said.out.find("bf16 is slower than f32 here") != std::string::npos);
    const bool native = said.out.find("Tessera's linear, native") != std::string::npos;
    CHECK((native || said.out.find("Tessera's linear, avx2") != std::string::npos));
  }
  const Said unknown = tessera_program("bench gemm --threads 1", "TESSERA_CPU=pentium");
  CHECK(unknown.code == 2);
  CHECK(unknown.complains_of("pentium"));
}

TEST_CASE("tessera bench run: a recipe's steps, past the end of an epoch") {
  const Said said = tessera_program(
      "bench run --recipe demo --batch 8 --set data.train_images=16 --set model.depth=1 --set "
      "model.dim=24 --warmup 3 --seconds 0.3 --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const nlohmann::json row = said.json();
  CHECK(row.at("dataset") == "shapes");
  CHECK(row.at("steps") > 2);  // which are an epoch
  CHECK(row.at("seconds") >= 0.3);
  CHECK(row.at("images_per_second").get<double>() ==
        doctest::Approx(8 * row.at("steps").get<double>() / row.at("seconds").get<double>()));
  CHECK(row.at("wait_share") >= 0);
  CHECK(row.at("wait_share") < 1);
}

TEST_CASE("cuda: tessera bench run, end to end in bf16") {
  if (!cuda_here()) return;
  const Said said = tessera_program(
      "bench run --recipe demo --batch 8 --set data.train_images=16 --set model.depth=1 --set "
      "model.dim=24 --warmup 3 --seconds 0.1 --device cuda --precision bf16 --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json().at("on_device") == true);
  CHECK(said.json().at("images_per_second") > 0);
}

TEST_CASE("cuda: tessera bench loader, of data kept there and streamed") {
  if (!cuda_here()) return;
  for (const bool streamed : {false, true}) {
    const Said said = tessera_program(
        std::string(
            "bench loader --dataset shapes --seconds 0.1 --batch 16 --device cuda --dtype bf16 --json") +
        (streamed ? " --streamed" : ""));
    CAPTURE(said.err);
    REQUIRE(said.code == 0);
    CHECK(said.json().at("on_device") == !streamed);
    CHECK(said.json().at("images").get<int64_t>() >= 16);
  }
}

TEST_CASE("cuda: TESSERA_TUNE remembers the algorithms that it has timed") {
  if (!cuda_here()) return;
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "algorithms";
  const auto bench = [&] {
    setenv("TESSERA_TUNE", file.c_str(), 1);
    const Said said = tessera_program("parity --device cuda " TESSERA_FIXTURES "/vit.safetensors");
    unsetenv("TESSERA_TUNE");
    return said;
  };
  const Said first = bench();
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  const std::string timed = bytes_of(file);
  CHECK(std::count(timed.begin(), timed.end(), '\n') > 5);
  CHECK(bench().code == 0);
  CHECK(bytes_of(file) == timed);  // nothing was timed again
  std::ofstream(file) << timed << "1 2 3: xyz\n";
  CHECK(bench().complains_of("is not a product and its algorithm"));
  std::ofstream(file) << "cuBLASLt 1, another GPU\n";
  CHECK(bench().complains_of("give another file"));
}

TEST_CASE("tessera bench: tables for people") {
  const Said said = tessera_program(
      "bench train --model vit --image-size 16 --classes 4 --batch 4 --steps 1 --warmup 0 --profile");
  CHECK(said.code == 0);
  for (const char* word :
       {"images/s", "share of peak", "operation", "(optimizer)", "attention", "floor / time"}) {
    CAPTURE(word);
    CHECK(said.out.find(word) != std::string::npos);
  }
}

TEST_CASE("tessera bench: what it refuses") {
  CHECK(tessera_program("bench train --model nosuch").complains_of("nosuch"));
  CHECK(tessera_program("bench train --batch 0").complains_of("--batch: 0 is not a number above 0"));
  CHECK(tessera_program("bench train --batch many").complains_of("many is not a number above 0"));
  CHECK(tessera_program("bench train --warmup -1").complains_of("-1 is not a number of 0 or more"));
  CHECK(
      tessera_program("bench run --recipe demo --seconds inf").complains_of("the number inf is not finite"));
  CHECK(tessera_program("bench run").complains_of("--dataset"));
  CHECK(tessera_program("bench run --recipe demo --epochs 3").complains_of("--epochs"));
  CHECK(tessera_program("bench train --presets vit,swim").complains_of("did you mean 'swin'?"));
  CHECK(tessera_program("bench train --presets vit --all").complains_of("--all"));
  CHECK(tessera_program("bench train --model vit --all").complains_of("--all"));
  CHECK(tessera_program("bench loader --dataset cifra10").complains_of("did you mean 'cifar10'?"));
  CHECK(tessera_program("bench loader --dataset cifar10").complains_of("--data"));
  CHECK(tessera_program("bench loader --dtype bf16").complains_of("--device cuda"));
}
