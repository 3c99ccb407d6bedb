// tessera score: FID, inception score, precision and recall, from an Inception network's answers.

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/generation_scores.h"
#include "apps/reporting/table.h"
#include "data/formats/numpy.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace {

struct Options {
  std::string reference, samples;
  int64_t splits = 10, neighbours = 0;
  bool json = false;
};

constexpr Column columns[] = {
    {"fid", "FID"},
    {"inception_score", "inception score"},
    {"inception_score_deviation", "  its deviation"},
    {"precision", "precision"},
    {"recall", "recall"},
};

// What a file holds of one set of pictures.
struct Answers {
  std::string path;
  Tensor features, probabilities;
  std::optional<NormalFit> moments;

  NormalFit fit() const { return moments ? *moments : fit_normal(features); }
  bool has_fit() const { return moments || features.defined(); }
};

Answers read_answers(const std::string& path) {
  Answers answers;
  answers.path = path;
  Tensor mean, covariance;
  const NamedTensors tensors =
      path.ends_with(".safetensors") ? read_safetensors(path).tensors : read_numpy(path);
  for (const auto& [name, tensor] : tensors) {
    const bool is_matrix = tensor.rank() == 2 && is_float(tensor.dtype());
    if (name == "features" || name == "pool_3" || (name == "arr_0" && is_matrix)) answers.features = tensor;
    if (name == "probabilities") answers.probabilities = tensor;
    if (name == "logits") answers.probabilities = softmax_rows(tensor);
    if (name == "mu") mean = tensor;
    if (name == "sigma") covariance = tensor;
    check(name != "arr_0" || tensor.rank() != 4, "score: ", path, " holds pictures ", tensor.shape(),
          ", wanted what an Inception network says of them: 'features' [N, D], 'logits' [N, K], or 'mu' and "
          "'sigma'");
  }
  check(mean.defined() == covariance.defined(), "score: ", path, " has only one of 'mu' and 'sigma'");
  if (mean.defined()) {
    const int64_t dim = mean.elements();
    check(mean.rank() == 1 && dim > 0 && covariance.shape() == Shape{dim, dim}, "score: ", path, ": 'mu' is ",
          mean.shape(), ", 'sigma' ", covariance.shape(), "; [D] and [D, D] are wanted");
    answers.moments = {mean.values(), covariance.values()};
  }
  check(answers.has_fit() || answers.probabilities.defined(), "score: ", path,
        " has none of 'features' (or 'arr_0') [N, D], 'mu' and 'sigma', 'logits' and 'probabilities' [N, K]");
  return answers;
}

ExitCode run(const Options& options) {
  const Answers reference = read_answers(options.reference), samples = read_answers(options.samples);
  Json scores = Json::object();
  if (reference.has_fit() && samples.has_fit())
    scores["fid"] = frechet_distance(reference.fit(), samples.fit());
  if (samples.probabilities.defined()) {
    const InceptionScore score = inception_score(samples.probabilities, options.splits);
    scores["inception_score"] = score.mean;
    scores["inception_score_deviation"] = score.deviation;
  }
  if (options.neighbours > 0) {
    for (const Answers* each : {&reference, &samples})
      check(each->features.defined(), "score: --neighbours compares features, and ", each->path, " has none");
    const auto [precision, recall] =
        precision_recall(reference.features, samples.features, options.neighbours);
    scores["precision"] = precision;
    scores["recall"] = recall;
  }
  check(!scores.empty(), "score: ", options.reference, " and ", options.samples,
        " have nothing to compare: features (or mu and sigma) of both, or logits of the samples");
  std::vector<Column> shown;
  for (const Column& column : columns)
    if (scores.contains(column.key)) shown.push_back(column);
  print_record(shown, scores, options.json);
  return ExitCode::done;
}

}  // namespace

void add_score(Command& app) {
  Command& command = add_command(
      app, "score", "FID, inception score, precision and recall of drawn pictures, from given features.",
      {"tessera score imagenet-256-stats.npz dit-features.npz",
       "tessera score real.safetensors drawn.safetensors --neighbours 3 --json"});
  const auto options = std::make_shared<Options>();
  command
      .add_option("reference", options->reference,
                  ".npz, .npy or .safetensors: 'features' [N, D], or 'mu' [D] and 'sigma' [D, D]")
      ->required()
      ->type_name("FILE");
  command
      .add_option(
          "samples", options->samples,
          "The same of the drawn pictures; with 'logits' or 'probabilities' [N, K] it has a score too")
      ->required()
      ->type_name("FILE");
  command.add_option("--splits", options->splits, "Runs of consecutive rows for the inception score")
      ->check(between(1, 1000000))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--neighbours", options->neighbours,
                  "Precision and recall by so many nearest neighbours, 3 in the paper; 0: neither")
      ->check(between(0, 1000))
      ->capture_default_str()
      ->type_name("K");
  add_json(command, options->json);
  add_threads(command);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
