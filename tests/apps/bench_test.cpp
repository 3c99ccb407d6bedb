#include <doctest/doctest.h>

#include "tests/apps/program.h"

using namespace tessera;

TEST_CASE("tessera bench train measures itself against the machine") {
  const Said said = tessera_program(
      "bench train --model sl-vit --image-size 16 --classes 4 --batch 8 --steps 2 --warmup 1 --profile "
      "--json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  const nlohmann::json row = said.json();
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
    linear = linear || each.at("op") == "linear";
  }
  CHECK(shares == doctest::Approx(1));
  CHECK(linear);
}

TEST_CASE("tessera bench infer, loader and gemm") {
  const Said infer =
      tessera_program("bench infer --model vit --image-size 16 --classes 4 --batch 8 --steps 2 --json");
  REQUIRE(infer.code == 0);
  CHECK(infer.json().at("images_per_second") > 0);
  CHECK(infer.json().at("share_of_peak") > 0);

  const Said loader = tessera_program("bench loader --dataset shapes --seconds 0.2 --batch 16 --json");
  CAPTURE(loader.err);
  REQUIRE(loader.code == 0);
  CHECK(loader.json().at("images_per_second") > 0);
  CHECK(loader.json().at("images").get<int64_t>() % 16 == 0);

  const Said gemm = tessera_program("bench gemm --threads 1 --json");
  REQUIRE(gemm.code == 0);
  CHECK(gemm.json().size() == 4);  // OpenBLAS and linear, in f32 and f64
  CHECK(gemm.json()[0].at("threads") == 1);
  CHECK(gemm.json()[0].at("gflops") > gemm.json()[2].at("gflops"));  // f32 is the faster one
}

TEST_CASE("tessera bench: tables for people") {
  const Said said = tessera_program(
      "bench train --model vit --image-size 16 --classes 4 --batch 4 --steps 1 --warmup 0 --profile");
  CHECK(said.code == 0);
  for (const char* word : {"images/s", "share of peak", "operation", "(optimizer)", "attention"}) {
    CAPTURE(word);
    CHECK(said.out.find(word) != std::string::npos);
  }
}

TEST_CASE("tessera bench: what it refuses") {
  CHECK(tessera_program("bench train --model nosuch").complains_of("nosuch"));
  CHECK(tessera_program("bench train --batch 0").complains_of("--batch"));
  CHECK(tessera_program("bench loader --dataset cifra10").complains_of("did you mean 'cifar10'?"));
  CHECK(tessera_program("bench loader --dataset cifar10").complains_of("--data"));
}
