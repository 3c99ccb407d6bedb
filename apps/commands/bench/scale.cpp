// tessera bench scale: what ranks cost, measured, and how far a run scales on a network.

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/model_bench.h"
#include "apps/options/options.h"
#include "apps/ranks/alike.h"
#include "apps/ranks/first_ranks.h"
#include "apps/ranks/run_on_ranks.h"
#include "apps/ranks/scale_model.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/profile.h"
#include "apps/reporting/table.h"
#include "apps/training/gradient_exchange.h"
#include "apps/training/step.h"
#include "engine/autograd/accumulate_kernels.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

struct Options : ModelBench {
  int64_t micro_batch = cpu_micro_batch;
  std::vector<std::string> networks{"10gbe", "100gbe", "hdr"};
};

constexpr int64_t most_ranks = 1024;

// The median time of a step on a batch of so many images a rank.
double time_of_step(const Options& options, const Json& config, Ranks* ranks, Profile* profile) {
  Model model = options.build_model(config);
  const auto optimizer = make_optimizer({}, model.parameters);
  ModelBench inputs = options;
  inputs.batch *= ranks ? ranks->size() : 1;
  const StepBatch batch{inputs.images(model), inputs.labels(model)};
  TrainStep step(
      model, *optimizer,
      {.micro_batch = options.micro_batch,
       .batch_norm = has_batch_norm(model) ? BatchNormStatistics::micro_batch : BatchNormStatistics::batch,
       .ranks = ranks});
  Pass pass{.training = true, .random = Random(options.seed), .answer_only = true};
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.warmup + options.steps; ++i) {
    if (profile) profile->start();
    const Stopwatch watch;
    step(batch, 1e-4, pass);
    if (profile) profile->stop();
    if (i >= options.warmup) seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

std::vector<Share> buckets_of(int64_t elements) {
  std::vector<Share> buckets;
  for (int64_t first = 0; first < elements; first += buckets.back().count)
    buckets.push_back({first, std::min(GradientSum::usual_bucket, elements - first)});
  return buckets;
}

// What a rank does in a step while no other one computes.
RankWork work_alone(const Options& options, const Json& config) {
  RankWork work;
  work.step = time_of_step(options, config, nullptr, nullptr);
  Profile profile(options.device);
  time_of_step(options, config, nullptr, &profile);
  work.micro_batches = std::ssize(cut_batch(options.batch, options.micro_batch));
  work.backward =
      profile.backward() / static_cast<double>(profile.steps()) / static_cast<double>(work.micro_batches);
  const Model model = options.build_model(config);
  for (const auto& [name, value] : trainable(model.parameters))
    work.gradient_bytes += static_cast<double>(value.bytes());
  work.buckets = std::ssize(buckets_of(static_cast<int64_t>(work.gradient_bytes) / int64_t{sizeof(float)}));
  const int64_t count = int64_t{1} << 22;
  const Tensor a = Tensor::zeros({count}), b = Tensor::zeros({count});
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    const Stopwatch watch;
    AccumulateKernels<Cpu>::add(a.data<float>(), b.data<float>(), count);
    seconds.push_back(watch.seconds());
  }
  work.add_bandwidth = static_cast<double>(a.bytes()) / median(seconds);
  return work;
}

// Half of the time of a message of so many bytes to rank 1 and back, the best of some rounds, as other work
// on the machine only adds to it; ranks from 2 on do nothing.
double time_to_other(Ranks& ranks, size_t bytes, int rounds) {
  std::vector<char> there(bytes), back(bytes);
  std::vector<double> seconds;
  for (int i = 0; i < rounds && ranks.rank() < 2; ++i) {
    const Stopwatch watch;
    if (ranks.is_first()) ranks.send(1, there.data(), bytes);
    ranks.receive(1 - ranks.rank(), back.data(), bytes);
    ranks.wait();
    if (!ranks.is_first()) ranks.send(0, there.data(), bytes);
    ranks.wait();
    seconds.push_back(watch.seconds() / 2);
  }
  return seconds.empty() ? 0 : *std::min_element(seconds.begin(), seconds.end());
}

// Between rank 0 and rank 1.
Network measured_network(Ranks& ranks) {
  Network network{"measured", time_to_other(ranks, 8, 1000)};
  constexpr int64_t many = 256;
  constexpr size_t large = size_t{8} << 20;
  std::vector<int64_t> bytes(many);
  const Stopwatch watch;
  for (int64_t& each : bytes) {
    if (ranks.rank() == 0) ranks.send(1, &each, sizeof each);
    if (ranks.rank() == 1) ranks.receive(0, &each, sizeof each);
  }
  ranks.wait();
  network.gap = watch.seconds() / static_cast<double>(many);
  network.bandwidth = static_cast<double>(large) / time_to_other(ranks, large, 20);
  gather(ranks, int64_t{0});
  return network;
}

// The median time in which the first `count` ranks add up gradients of so many bytes, one branch each.
double time_of_reduction(Ranks& ranks, int count, int64_t bytes) {
  gather(ranks, int64_t{0});
  if (ranks.rank() >= count) return 0;
  FirstRanks first(ranks, count);
  const int64_t elements = bytes / int64_t{sizeof(float)};
  const std::vector<Share> buckets = buckets_of(elements);
  GradientExchange exchange(first, buckets, DType::f32);
  const std::vector<Tensor> own{Tensor::zeros({elements})};
  std::vector<double> seconds;
  for (int i = 0; i < 12; ++i) {
    gather(first, int64_t{0});
    const Stopwatch watch;
    exchange.begin(count);
    while (exchange.started() < std::ssize(buckets)) exchange.start(own);
    exchange.finish();
    if (i >= 2) seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

Json reductions(Ranks& ranks, const RankWork& work, const Network& network) {
  Json rows = Json::array();
  for (int count = 2; count <= ranks.size(); ++count)
    for (const int64_t part : {64, 8, 1}) {
      const int64_t floats = static_cast<int64_t>(work.gradient_bytes) / part / 4;
      RankWork of_part = work;
      of_part.gradient_bytes = 4 * static_cast<double>(floats);
      of_part.micro_batches = 1;
      of_part.buckets = std::max<int64_t>(1, work.buckets / part);
      rows.push_back({{"ranks", count},
                      {"bytes", of_part.gradient_bytes},
                      {"seconds", time_of_reduction(ranks, count, 4 * floats)},
                      {"predicted_seconds", reduction_seconds(of_part, network, count)}});
    }
  return rows;
}

Json predictions(const RankWork& work, const std::vector<Network>& networks) {
  Json rows = Json::array();
  for (int64_t ranks = 2; ranks <= most_ranks; ranks *= 2) {
    Json row{{"ranks", ranks}};
    for (const Network& network : networks) {
      const double step = step_seconds(work, network, ranks);
      row[network.name] = {{"reduction_seconds", reduction_seconds(work, network, ranks)},
                           {"step_seconds", step},
                           {"efficiency", work.step / step}};
      row[network.name + " efficiency"] = work.step / step;
    }
    rows.push_back(row);
  }
  return rows;
}

Json measure(const Options& options, Ranks* ranks) {
  const Json config = options.source.config();
  if (ranks) expect_alike(*ranks, {.device = options.device});
  // Ranks that share cores compute at the same time, as they do in a run.
  const RankWork work = work_alone(options, config);
  Json result{{"model", options.source.name()},
              {"threads", threads()},
              {"images_a_rank", options.batch},
              {"micro_batches_a_rank", work.micro_batches},
              {"step_seconds", work.step},
              {"backward_seconds", work.backward},
              {"gradient_bytes", work.gradient_bytes},
              {"buckets", work.buckets},
              {"add_bytes_per_second", work.add_bandwidth},
              {"ranks", ranks ? ranks->size() : 1}};
  std::vector<Network> networks;
  if (ranks) {
    const Network network = measured_network(*ranks);
    networks.push_back(network);
    result.update({{"latency_seconds", network.latency},
                   {"gap_seconds", network.gap},
                   {"bytes_per_second", network.bandwidth}});
    result["reductions"] = reductions(*ranks, work, network);
    const double together = time_of_step(options, config, ranks, nullptr);
    result.update({{"together_step_seconds", together}, {"efficiency", work.step / together}});
  }
  for (const std::string& name : options.networks) networks.push_back(network_of(name));
  result["predictions"] = predictions(work, networks);
  return result;
}

constexpr Column facts[] = {
    {"model", "model"},
    {"ranks", "ranks", as_integer},
    {"threads", "threads a rank", as_integer},
    {"images_a_rank", "images a rank", as_integer},
    {"micro_batches_a_rank", "micro-batches a rank", as_integer},
    {"step_seconds", "a step of a rank alone", as_seconds},
    {"backward_seconds", "backward of its last micro-batch", as_seconds},
    {"gradient_bytes", "gradients", as_bytes},
    {"buckets", "buckets", as_integer},
    {"add_bytes_per_second", "added a second", as_bytes},
    {"latency_seconds", "latency to rank 1", as_seconds},
    {"bytes_per_second", "bandwidth to rank 1, a second", as_bytes},
    {"together_step_seconds", "a step of all ranks", as_seconds},
    {"efficiency", "efficiency", as_percent},
};

constexpr Column reduction_columns[] = {
    {"ranks", "ranks", as_integer},
    {"bytes", "gradients", as_bytes},
    {"seconds", "reduction", as_seconds},
    {"predicted_seconds", "by the formula", as_seconds},
};

void print_predictions(const Json& rows) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : rows.front().items())
    if (value.is_number() && key != "ranks") keys.push_back(key);
  std::vector<Column> columns{{"ranks", "ranks", as_integer}};
  for (const std::string& key : keys) columns.push_back({key.c_str(), key.c_str(), as_percent});
  fmt::print("\nPredicted, each rank with the same work (apps/ranks/README.md has the formula)\n");
  print_table(columns, rows);
}

ExitCode bench_scale(const Options& options, Ranks* ranks) {
  const Json result = measure(options, ranks);
  if (ranks && !ranks->is_first()) return ExitCode::done;
  if (options.json) {
    print_json(result);
    return ExitCode::done;
  }
  print_record(facts, result);
  if (ranks) {
    fmt::print("\n");
    print_table(reduction_columns, result["reductions"]);
  }
  print_predictions(result["predictions"]);
  return ExitCode::done;
}

}  // namespace

void add_bench_scale(Command& bench) {
  Command& command = add_command(
      bench, "scale", "What ranks cost here, and how far training scales on a network.",
      {"mpirun -n 2 tessera bench scale --model sl-vit --batch 128 --micro-batch 32",
       "tessera bench scale --model sl-vit --network 10gbe,100gbe,hdr --json"},
      "A step of each rank alone, and of all; the time of the reduction by size and ranks, latency and\n"
      "bandwidth between two ranks; and from them the efficiency for 2 to 1,024 ranks with the same work\n"
      "each, by a formula whose networks have the nominal numbers of their kind. Alone, it measures a\n"
      "rank's own work and predicts.");
  const auto options = std::make_shared<Options>();
  options->add_to(command, {DType::f32});
  command.add_option("--micro-batch", options->micro_batch, "Images that go through at once")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--network", options->networks, "1gbe, 10gbe, 25gbe, 100gbe, hdr or ndr")
      ->delimiter(',')
      ->type_name("NAME,...");
  on_run(command, [options, &command] {
    check(options->device == Device::cpu, "bench: scale measures ranks that compute on CPUs");
    for (const std::string& name : options->networks) network_of(name);
    return run_on_ranks(command.given("--threads"),
                        [&](Ranks* ranks) { return bench_scale(*options, ranks); });
  });
}

}  // namespace tessera
