#include <doctest/doctest.h>

#include <cmath>

#include "data/formats/numpy.h"
#include "engine/io/safetensors.h"
#include "tests/commands/program.h"

using namespace tessera;

namespace {

Tensor matrix(const std::vector<double>& values, int64_t columns) {
  return Tensor::from(values, {std::ssize(values) / columns, columns}, DType::f64);
}

}  // namespace

TEST_CASE("score compares moments and features, from .npz and .safetensors") {
  const TemporaryFolder folder;
  const std::string a = folder / "a.safetensors", b = folder / "b.npz", c = folder / "c.safetensors";
  // Normals with deviations (1, 2) and (3, 2), one apart in the second mean: 1 + (3 - 1)^2
  write_safetensors(a, {{"mu", Tensor::from(std::vector<double>{0, 0}, {2}, DType::f64)},
                        {"sigma", matrix({1, 0, 0, 4}, 2)}});
  const std::vector<double> mu{0, 1}, sigma{9, 0, 0, 4};
  const auto bytes = [](const std::vector<double>& x) {
    return std::string_view(reinterpret_cast<const char*>(x.data()), 8 * x.size());
  };
  const NumpyArray arrays[] = {{"mu", DType::f64, {2}, bytes(mu)},
                               {"sigma", DType::f64, {2, 2}, bytes(sigma)}};
  write_npz(b, arrays);
  const Said said = tessera_program("score " + a + " " + b + " --json");
  CAPTURE(said.err);
  REQUIRE(said.code == 0);
  CHECK(said.json()["fid"].get<double>() == doctest::Approx(5).epsilon(1e-12));
  CHECK(said.json().size() == 1);

  write_safetensors(c, {{"features", matrix({0, 0, 1, 0, 0, 1, 1, 1}, 2)},
                        {"logits", matrix({9, 0, 0, 9, 9, 0, 0, 9}, 2)}});
  const Said own = tessera_program("score " + c + " " + c + " --splits 1 --neighbours 1 --json");
  CAPTURE(own.err);
  REQUIRE(own.code == 0);
  CHECK(std::abs(own.json()["fid"].get<double>()) < 1e-12);
  CHECK(own.json()["inception_score"].get<double>() == doctest::Approx(2).epsilon(0.01));
  CHECK((own.json()["precision"] == 1 && own.json()["recall"] == 1));
  const Said table = tessera_program("score " + c + " " + c + " --splits 1");
  CHECK((table.out.find("FID") != std::string::npos && table.out.find("precision") == std::string::npos));
}

TEST_CASE("score refuses what it cannot compare, with the reason") {
  const TemporaryFolder folder;
  const std::string good = folder / "good.safetensors", bad = folder / "bad.safetensors";
  write_safetensors(good, {{"features", matrix({0, 0, 1, 0, 0, 1}, 2)}});
  const auto refused = [&](const NamedTensors& tensors, const std::string& why,
                           const std::string& more = "") {
    write_safetensors(bad, tensors);
    check_refused("score " + good + " " + bad + " " + more, why);
  };
  refused({{"arr_0", Tensor::zeros({2, 4, 4, 3}, DType::u8)}}, "holds pictures");
  refused({{"x", Tensor::zeros({2})}}, "has none of 'features'");
  refused({{"mu", Tensor::zeros({2})}}, "only one of 'mu' and 'sigma'");
  refused({{"mu", Tensor::zeros({2})}, {"sigma", Tensor::zeros({2, 3})}}, "[D] and [D, D] are wanted");
  refused({{"features", matrix({1, 2, 3, 4, 5, 6}, 3)}}, "of one network");
  refused({{"features", matrix({1, 2}, 2)}}, "at least 2");
  refused({{"probabilities", matrix({1, 1}, 2)}}, "is no distribution", "--splits 1");
  refused({{"mu", Tensor::zeros({2})}, {"sigma", Tensor::zeros({2, 2})}}, "has none", "--neighbours 1");
  refused({{"features", matrix({1, 2, 3, 4}, 2)}, {"probabilities", matrix({1, 0, 0, 1}, 2)}},
          "3 splits of 2 rows; wanted 1 to 2", "--splits 3");
  check_refused("score " + good + " " + (folder / "none.npz").string(), "none.npz");
  put(folder / "broken.npz", "PK");
  check_refused("score " + good + " " + (folder / "broken.npz").string(), "broken.npz");
}
