#include "apps/inspector/proof.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/parallel.h"
#include "engine/core/random.h"

namespace tessera {

namespace {

// The same inputs and model in double, apart from these.
PassInputs in_double(const PassInputs& inputs) {
  PassInputs exact = inputs;
  exact.model = copy_as(inputs.model, DType::f64);
  for (auto& [name, tensor] : exact.inputs)
    if (is_float(tensor.dtype())) tensor = tensor.clone().to(DType::f64);
  return exact;
}

// The size of a tensor's finite numbers, by which a cell of it is moved.
double scale_of(const Tensor& x, int64_t cell) {
  const std::vector<double> values = x.values();
  double squares = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++count;
  }
  const double own = std::abs(values[static_cast<size_t>(cell)]);
  const double scale = std::max(std::isfinite(own) ? own : 0, count > 0 ? std::sqrt(squares / count) : 0);
  return scale > 0 ? scale : 1;
}

// This is the usual error of the loss. Each op rounds its results y by at most 2^-53 y, which moves the loss
// by dy times that, and independent errors add up to the root of the sum of their squares over all cells. The
// loss's own size says too little: where it is the small difference of two logits, it has their errors.
double rounding_of_loss(const PassRecord& record) {
  double squares = 0;
  for (const PassRecord::Value& value : record.values()) {
    if (value.kind != PassRecord::Kind::computed || !value.gradient.defined()) continue;
    const std::vector<double> y = value.value.values(), dy = value.gradient.values();
    for (size_t i = 0; i < y.size(); ++i)
      if (const double part = y[i] * dy[i]; std::isfinite(part)) squares += part * part;
  }
  return std::numeric_limits<double>::epsilon() / 2 * std::sqrt(squares);
}

// To so many decimal digits, which is short in JSON too.
double rounded(double x, int digits) {
  return std::strtod(fmt::format("{:.{}g}", x, digits).c_str(), nullptr);
}

// A cell of a value, by its places.
struct CellToProve {
  size_t place;
  int64_t cell;
  Json proof = {};
};

std::vector<CellToProve> cells_of(const PassRecord& record, int64_t count) {
  std::vector<CellToProve> cells;
  for (size_t place = 0; place < record.values().size(); ++place) {
    const Tensor& gradient = record.values()[place].gradient;
    if (!gradient.defined()) continue;
    for (const int64_t cell : cells_to_prove(gradient, count, place)) cells.push_back({place, cell});
  }
  return cells;
}

Json json_of(std::vector<CellToProve> cells) {
  Json proofs = Json::object();
  for (CellToProve& cell : cells) proofs[std::to_string(cell.place)].push_back(std::move(cell.proof));
  return proofs;
}

// Works on the cells until none is left.
void work_on(std::vector<CellToProve>& cells, std::atomic<size_t>& next, const Prover& prover) {
  for (size_t i; (i = next++) < cells.size();)
    cells[i].proof = json_of(prover.prove(cells[i].place, cells[i].cell));
}

// Runs f(thread) on that many threads at once. Rethrows the first error.
template <class F> void on_threads(int count, const F& f) {
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<std::thread> others;
  const auto guarded = [&](int thread) {
    try {
      // One pass a thread: the ops of a pass on one picture are too small to be shared out.
      tbb::task_arena alone(1);
      alone.execute([&] { f(thread); });
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  for (int i = 1; i < count; ++i) others.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

Experiment experiment_of(const PassInputs& inputs) {
  const auto exact = std::make_shared<const PassInputs>(in_double(inputs));
  const auto leaf = [exact](const std::string& name) -> const Tensor* {
    if (const Tensor* parameter = exact->model.parameters.find(name)) return parameter;
    const auto found = exact->inputs.find(name);
    return found == exact->inputs.end() ? nullptr : &found->second;
  };
  return {inspect_pass(*exact).record, [exact] { return loss_of_pass(*exact); }, leaf};
}

bool Proof::agrees() const { return error < 1e-5 || std::abs(analytic - difference) <= rounding; }

Json json_of(const Proof& proof) {
  Json json{{"cell", proof.cell},
            {"analytic", proof.analytic},
            {"difference", proof.difference},
            {"error", rounded(proof.error, 2)},
            {"step", proof.step},
            {"ok", proof.agrees()}};
  if (proof.error > 0 && std::max(std::abs(proof.analytic), std::abs(proof.difference)) < proof.rounding)
    json["note"] = "Both are too small to be told from the rounding of the loss.";
  return json;
}

Prover::Prover(Experiment experiment)
    : experiment_(std::move(experiment)),
      course_(experiment_),
      rounding_of_loss_(rounding_of_loss(experiment_.record)) {}

Proof Prover::with_step(size_t place, Ops ops, Proof proof, double h) const {
  const auto loss = [&](double by) { return moved_loss(experiment_, course_, ops, place, proof.cell, by); };
  const double up = loss(h), down = loss(-h);
  proof.step = h;
  proof.difference = (up - down) / (2 * h);
  const double larger = std::max(std::abs(proof.analytic), std::abs(proof.difference));
  proof.error = larger > 0 ? std::abs(proof.analytic - proof.difference) / larger : 0;
  // The factor leaves room for ops that round more than once; models trained for a demo need no more than 2.
  proof.rounding = 8 * rounding_of_loss_ / h;
  return proof;
}

Proof Prover::at_steadiest_step(size_t place, const Proof& proof, double scale) const {
  std::vector<Proof> tried;
  for (const double part : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8})
    tried.push_back(with_step(place, Ops::all, proof, rounded(part * scale, 1)));
  size_t best = 1;
  // Rounding counts too, because steps so small that both losses are the same number are steady and say
  // nothing.
  const auto doubt = [&](size_t i) {
    return std::abs(tried[i].difference - tried[i - 1].difference) + tried[i].rounding;
  };
  for (size_t i = 2; i < tried.size(); ++i)
    if (doubt(i) < doubt(best)) best = i;
  return tried[best];
}

Proof Prover::prove(size_t place, int64_t cell) const {
  const auto& values = record().values();
  check(place < values.size(), "proof: value ", place, "; the pass has ", values.size());
  const PassRecord::Value& value = values[place];
  check(value.kind != PassRecord::Kind::constant, "proof: ", value.name,
        " is a constant and has no gradient");
  check(cell >= 0 && cell < value.value.elements(), "proof: cell ", cell, "; ", value.name, " has ",
        value.value.elements());
  Proof proof{.cell = cell};
  if (value.gradient.defined()) proof.analytic = value.gradient.values()[static_cast<size_t>(cell)];
  const double scale = scale_of(value.value, cell);
  const Proof first = with_step(place, Ops::behind, proof, rounded(1e-3 * scale, 1));
  return first.agrees() ? first : at_steadiest_step(place, proof, scale);
}

std::vector<int64_t> cells_to_prove(const Tensor& gradient, int64_t count, uint64_t seed) {
  const std::vector<double> dx = gradient.values();
  const auto size = static_cast<int64_t>(dx.size());
  if (size == 0 || count <= 0) return {};
  const auto largest =
      std::max_element(dx.begin(), dx.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  std::vector<int64_t> cells{largest - dx.begin()};
  if (count >= size) {
    for (int64_t cell = 0; cell < size; ++cell)
      if (cell != cells[0]) cells.push_back(cell);
    return cells;
  }
  Random random(seed);
  std::set<int64_t> chosen(cells.begin(), cells.end());
  while (static_cast<int64_t>(cells.size()) < count)
    if (const int64_t cell = random.below(size); chosen.insert(cell).second) cells.push_back(cell);
  return cells;
}

int64_t usual_proofs(const PassInputs& inputs, const PassRecord& record) {
  constexpr double most_macs = 6e11;
  const auto& values = record.values();
  const auto gradients = std::count_if(
      values.begin(), values.end(), [](const PassRecord::Value& value) { return value.gradient.defined(); });
  // Two losses a cell, of half the ops on average.
  const auto macs_of_each = static_cast<double>(cost_of(inputs.model.config).macs * gradients);
  const auto images = static_cast<double>(inputs.inputs.at("input").dim(0));
  return std::clamp<int64_t>(static_cast<int64_t>(most_macs / (macs_of_each * images)), 0, 4);
}

Json proofs_of(const Prover& prover, int64_t count) {
  std::vector<CellToProve> cells = cells_of(prover.record(), count);
  std::atomic<size_t> next = 0;
  work_on(cells, next, prover);
  return json_of(std::move(cells));
}

Json proofs_of(const std::function<Experiment()>& make, int64_t count) {
  std::vector<Prover> provers;
  provers.emplace_back(make());
  std::vector<CellToProve> cells = cells_of(provers[0].record(), count);
  const int workers =
      static_cast<int>(std::clamp<size_t>(cells.size() / 8, 1, static_cast<size_t>(threads())));
  while (static_cast<int>(provers.size()) < workers) provers.emplace_back(make());
  std::atomic<size_t> next = 0;
  on_threads(workers, [&](int thread) { work_on(cells, next, provers[static_cast<size_t>(thread)]); });
  return json_of(std::move(cells));
}

}  // namespace tessera
