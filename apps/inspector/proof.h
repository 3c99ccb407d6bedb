#pragma once

// "Is it true?": a gradient beside the central difference of the loss, both in double.

#include <functional>
#include <vector>

#include "apps/inspector/moved_run.h"
#include "apps/inspector/pass.h"
#include "engine/autograd/pass_record.h"
#include "engine/io/json.h"

namespace tessera {

// The experiment of these inputs, in double, with copies of the model and of the inputs.
Experiment experiment_of(const PassInputs& inputs);

struct Proof {
  int64_t cell = 0;  // row-major, in the value's own shape
  double analytic = 0, difference = 0;
  double error = 0;     // |analytic - difference| / the larger of both; 0 where both are 0
  double step = 0;      // the h of (L(x + h) - L(x - h)) / (2 h)
  double rounding = 0;  // what rounding alone can make of the difference
  bool agrees() const;  // to a relative error of 1e-5, or to the rounding
};

// {cell, analytic, difference, error to two digits, step, ok}, and a note where rounding is larger than both
// numbers.
Json json_of(const Proof& proof);

// Proves gradients of one experiment.
class Prover {
 public:
  explicit Prover(Experiment experiment);

  const PassRecord& record() const { return experiment_.record; }

  // Proves the gradient of one cell of value `place` of the record: the cell is moved up and down, a leaf's
  // before the run, a computed one as soon as its op has run, so that whatever reads it reads the moved one.
  //
  // The first step h is 1e-3 times the cell or the root mean square of its tensor, whichever is larger, to
  // one digit, and the ops before the moved number are skipped. Where that difference does not agree with the
  // gradient (a third derivative may be large, or the cell next to the kink of a relu), differences of all
  // ops at seven steps from 1e-2 to 1e-8 are taken, and that one counts which differs least from its
  // neighbour and is least rounded, whatever the gradient is.
  //
  // Fails for a place or cell that the record does not have, and for a constant.
  Proof prove(size_t place, int64_t cell) const;

 private:
  Proof with_step(size_t place, Ops ops, Proof proof, double h) const;
  Proof at_steadiest_step(size_t place, const Proof& proof, double scale) const;

  Experiment experiment_;
  Course course_;
  double rounding_of_loss_;
};

// The cells of a gradient that are proved: the largest, then others drawn at random; all where it has no
// more.
std::vector<int64_t> cells_to_prove(const Tensor& gradient, int64_t count, uint64_t seed);

// How many cells of each gradient are proved unless somebody says: 4, or fewer where that would take more
// than 6e11 multiply-accumulates, some forty seconds on two cores; 0 for large models.
int64_t usual_proofs(const PassInputs& inputs, const PassRecord& record);

// Proofs of `count` cells of every value with a gradient, in the order of cells_to_prove(), on all threads:
// {place: [json_of(proof), ...]}. `make` makes an experiment for each thread.
Json proofs_of(const std::function<Experiment()>& make, int64_t count);

// The same by this prover, on this thread.
Json proofs_of(const Prover& prover, int64_t count);

}  // namespace tessera
