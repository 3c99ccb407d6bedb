#include "apps/inspector/moved_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// The tape that the program's own steps are recorded on; null for an op outside of it.
const Tape* kept() {
  const Tape* tape = Tape::recording();
  return tape && tape->keeps_all() ? tape : nullptr;
}

size_t step_that_made(const PassRecord& record, size_t place) {
  const auto& steps = record.steps();
  const auto made = std::find_if(steps.begin(), steps.end(),
                                 [&](const PassRecord::Step& step) { return step.output == place; });
  return made == steps.end() ? Course::none : static_cast<size_t>(made - steps.begin());
}

void fill(const Tensor& to, const Tensor& from) {
  check(to.bytes() == from.bytes() && to.dtype() == from.dtype(), "proof: the program makes ", to.shape(),
        " where it made ", from.shape(), " before");
  std::memcpy(to.raw(), from.raw(), from.bytes());
}

// Moves a leaf's cell while it lives.
class MovedLeaf {
 public:
  MovedLeaf(const Experiment& experiment, size_t place, int64_t cell, double h) {
    const std::string& name = experiment.record.values()[place].name;
    const Tensor* leaf = experiment.leaf(name);
    check(leaf != nullptr, "proof: ", name, " is made inside the program and cannot be moved");
    cell_ = leaf->data<double>() + cell;
    before_ = std::exchange(*cell_, *cell_ + h);
  }
  ~MovedLeaf() { *cell_ = before_; }
  MovedLeaf(const MovedLeaf&) = delete;
  MovedLeaf& operator=(const MovedLeaf&) = delete;

 private:
  double* cell_;
  double before_;
};

// Follows a run of the program, in which the ops before `start`, an event, are skipped.
class Run {
 public:
  Run(const PassRecord& record, const Course& course, size_t start)
      : record_(record), course_(course), start_(start) {
    // Steps from this one on compute.
    while (first_step_ < record_.steps().size() && course_.event_of_step(first_step_) < start_) ++first_step_;
  }

  void move_output(size_t event, int64_t cell, double h) {
    moved_event_ = event;
    cell_ = cell;
    h_ = h;
  }

  // The first op runs, because what is done before it, as copying the inputs, must be done.
  void follow(const ForwardEvent& event) {
    check(next_ < course_.events().size(), "proof: the program runs more ops than before");
    const Course::Event& before = course_.events()[next_];
    if (before.step == Course::none)
      fill(event.output, before.output);
    else if (next_ < start_)
      restore(event.output, record_.steps()[before.step].output);
    if (next_ == moved_event_) event.output.data<double>()[cell_] += h_;
    ++next_;
    if (next_ < start_ && !dry_) dry_.emplace();
    if (next_ >= start_) dry_.reset();
  }

 private:
  void restore(const Tensor& output, size_t place) const {
    if (course_.is_read_from(place, first_step_)) fill(output, record_.values()[place].value);
  }

  const PassRecord& record_;
  const Course& course_;
  size_t start_, first_step_ = 0, next_ = 0, moved_event_ = Course::none;
  int64_t cell_ = 0;
  double h_ = 0;
  std::optional<DryRun> dry_;
};

// An op of a run, whether it is recorded or not.
struct Seen {
  const Op* op;
  size_t steps_before;  // on the tape
  Tensor output;
};

std::vector<Seen> ops_of(const Experiment& experiment) {
  std::vector<Seen> seen;
  const Observer observer([&](const ForwardEvent& event) {
    if (const Tape* tape = kept()) seen.push_back({&event.op, tape->steps().size(), event.output});
  });
  const double loss = experiment.loss();
  check(std::isfinite(loss), "proof: the loss is ", loss);
  return seen;
}

}  // namespace

Course::Course(const Experiment& experiment) {
  const auto& steps = experiment.record.steps();
  std::vector<Seen> seen = ops_of(experiment);
  event_of_step_.assign(steps.size(), none);
  for (size_t e = 0; e < seen.size(); ++e) {
    const size_t step = seen[e].steps_before,
                 after = e + 1 < seen.size() ? seen[e + 1].steps_before : steps.size();
    const bool recorded = after > step;
    check(!recorded || (after == step + 1 && seen[e].op->name == steps[step].op->name),
          "proof: the program runs ", seen[e].op->name, " as step ", step,
          " of the second pass; it must take the steps of the first");
    events_.push_back({recorded ? step : none, recorded ? Tensor() : seen[e].output.clone()});
    if (recorded) event_of_step_[step] = e;
  }
  first_reader_.assign(experiment.record.values().size(), none);
  last_reader_.assign(experiment.record.values().size(), 0);
  for (size_t s = 0; s < steps.size(); ++s) {
    check(event_of_step_[s] != none, "proof: the second pass ends before step ", s, ", ", steps[s].op->name);
    for (const size_t input : steps[s].inputs) {
      if (input == PassRecord::left_out) continue;
      first_reader_[input] = std::min(first_reader_[input], s);
      last_reader_[input] = s;
    }
  }
}

double moved_loss(const Experiment& experiment, const Course& course, Ops ops, size_t place, int64_t cell,
                  double h) {
  const size_t made = step_that_made(experiment.record, place), reader = course.first_reader(place);
  const bool is_leaf = made == Course::none;
  size_t start = 0;
  if (ops == Ops::behind && !is_leaf) start = course.event_of_step(made) + 1;
  if (ops == Ops::behind && is_leaf && reader != Course::none) start = course.event_of_step(reader);
  std::optional<MovedLeaf> leaf;
  if (is_leaf) leaf.emplace(experiment, place, cell, h);
  Run run(experiment.record, course, start);
  if (!is_leaf) run.move_output(course.event_of_step(made), cell, h);
  const Observer observer([&](const ForwardEvent& event) {
    if (kept()) run.follow(event);
  });
  return experiment.loss();
}

}  // namespace tessera
