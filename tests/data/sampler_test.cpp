#include "data/sampler.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/json.h"
#include "tests/data/files.h"

namespace tessera {

TEST_CASE("sampler: the authors' batches for given permutations") {
  const Json file = read_json(std::string(TESSERA_FIXTURES) + "/augment/schedule.json");
  int cases = 0;
  for (const Json& wanted : file.at("sampler").at("cases")) {
    const SamplerOptions options{.batch = wanted.at("batch"),
                                 .passes = wanted.at("length_factor"),
                                 .repetitions = wanted.at("repetitions"),
                                 .drop_last = wanted.at("drop_last")};
    const Sampler sampler(wanted.at("images"), options, 0);
    std::vector<int64_t> permutations, batches;
    for (const auto& list : wanted.at("permutations"))
      for (const int64_t index : list) permutations.push_back(index);
    for (const auto& list : wanted.at("batches"))
      for (const int64_t index : list) batches.push_back(index);
    CHECK(sampler.batches() == wanted.at("length").get<int64_t>());
    CHECK(sampler.walk(permutations) == batches);
    ++cases;
  }
  CHECK(cases == 3);
}

TEST_CASE("sampler: every pass is a permutation of its own, the same for seed and epoch") {
  const Sampler sampler(50, {.batch = 10, .passes = 3}, 7);
  const std::vector<int64_t> order = sampler.epoch(2);
  CHECK(sampler.batches() == 15);
  REQUIRE(order.size() == 150);
  std::set<std::vector<int64_t>> passes;
  for (auto pass = order.begin(); pass != order.end(); pass += 50) {
    CHECK(std::set<int64_t>(pass, pass + 50).size() == 50);
    passes.emplace(pass, pass + 50);
  }
  CHECK(passes.size() == 3);
  CHECK(sampler.epoch(2) == order);
  CHECK(sampler.epoch(3) != order);
  CHECK(Sampler(50, {.batch = 10, .passes = 3}, 8).epoch(2) != order);
}

TEST_CASE("sampler: every image comes to every place as often") {
  const Sampler sampler(4, {.batch = 1}, 5);
  int64_t counts[4][4] = {};
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const std::vector<int64_t> order = sampler.epoch(epoch);
    for (size_t place = 0; place < 4; ++place) ++counts[order[place]][place];
  }
  for (const auto& of_image : counts)  // 1000 of a deviation of 27
    for (const int64_t count : of_image) CHECK(std::abs(count - 1000) < 150);
}

TEST_CASE("sampler: DeiT's repeated augmentation sees a third of the images, three times each in a row") {
  const Sampler sampler(1000, {.batch = 50, .repetitions = 3, .multiple = 256}, 1);
  const std::vector<int64_t> order = sampler.epoch(0);
  CHECK(sampler.batches() == 15);  // 768 images
  REQUIRE(order.size() == 750);
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == order[i - i % 3]);
  CHECK(std::set<int64_t>(order.begin(), order.end()).size() == 250);
  CHECK(sampler.epoch(1) != order);
}

TEST_CASE("sampler: evaluation walks all in order") {
  const Sampler sampler(10, {.batch = 4, .shuffle = false, .drop_last = false}, 0);
  CHECK(sampler.batches() == 3);
  CHECK(sampler.images() == 10);
  CHECK(sampler.epoch(5) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("sampler: sizes that make no batch") {
  check_refused([] { Sampler(0, {}, 0); }, "0 images");
  check_refused([] { Sampler(10, {.batch = 0}, 0); }, "batch size 0");
  check_refused([] { Sampler(10, {.batch = 4, .passes = 0}, 0); }, "0 passes");
  check_refused([] { Sampler(10, {.batch = 4, .multiple = 0}, 0); }, "multiple of 0");
  check_refused([] { Sampler(100, {.batch = 4, .multiple = 256}, 0); }, "0 images");
  check_refused([] { Sampler(100, {.batch = 128}, 0); }, "100", "128");
}

}  // namespace tessera
