#include <atomic>

#include "apps/reporting/run_report.h"
#include "apps/training/session.h"
#include "tests/training/small_run.h"

using namespace tessera;

namespace {

// Counts how often a picture is read.
class CountingSplit : public Split {
 public:
  explicit CountingSplit(std::shared_ptr<const Split> split) : split_(std::move(split)) {}

  int64_t size() const override { return split_->size(); }
  int64_t label(int64_t i) const override { return split_->label(i); }
  void image(int64_t i, Image& out) const override {
    ++read;
    split_->image(i, out);
  }
  std::string source(int64_t i) const override { return split_->source(i); }

  mutable std::atomic<int64_t> read = 0;

 private:
  std::shared_ptr<const Split> split_;
};

}  // namespace

TEST_CASE("a run's report takes the validation pass after its best epoch, and is the one of a new pass") {
  const Quiet quiet;
  const TemporaryFolder folder;
  Dataset dataset = make_shapes({.image_size = 16, .train = 20, .validation = 70});
  const auto counting = std::make_shared<CountingSplit>(dataset.validation);
  dataset.validation = counting;
  const SmallRun run =
      small_run({{"model", small_vit}, {"epochs", 3}, {"ema", 0.9}, {"micro_batch", 4}}, dataset);
  RunFolder run_folder = RunFolder::create(folder / "run", to_json(run.config));
  Trainer trainer(run.config, run.dataset, {});
  CHECK(trainer.best_pass() == nullptr);
  REQUIRE(trainer.run(run_folder, {}) == Ending::finished);
  REQUIRE(trainer.best_pass());
  CHECK(trainer.best_pass()->judgements.size() == 70);
  CHECK(trainer.best_pass()->evaluation.top1() == trainer.position().best_score);
  CHECK(counting->read == 3 * 70);

  constexpr int64_t shown = 24;  // mistakes, with their pictures
  const std::string page = bytes_of(write_report(folder / "run", dataset, Device::cpu, trainer.best_pass()));
  CHECK(counting->read <= 3 * 70 + shown);
  const int64_t before = counting->read;
  CHECK(bytes_of(write_report(folder / "run", dataset, Device::cpu)) == page);
  CHECK(counting->read >= before + 70);
}

TEST_CASE("a run in bf16 is judged in bf16, by its report too") {
  const Quiet quiet;
  const TemporaryFolder folder;
  const SmallRun run = small_run({{"model", small_vit}});
  const auto trained = [&](const char* name, Precision precision) {
    const Computing computing{.precision = precision};
    Trainer trainer(run.config, run.dataset, computing);
    RunFolder run_folder = RunFolder::create(folder / name, to_json(run.config));
    REQUIRE(run_session(trainer, run_folder, {}, computing, "start") == Ending::finished);
    const std::string page =
        bytes_of(write_report(folder / name, run.dataset, Device::cpu, trainer.best_pass()));
    CHECK(bytes_of(write_report(folder / name, run.dataset, Device::cpu)) == page);
    CHECK(precision_of(read_run(folder / name)) == precision);
    return *trainer.best_pass();
  };
  const JudgedPass wide = trained("wide", Precision::f32), narrow = trained("narrow", Precision::bf16);
  CHECK(narrow.evaluation.loss() != wide.evaluation.loss());
  CHECK(narrow.evaluation.loss() == doctest::Approx(wide.evaluation.loss()).epsilon(0.03));
}
