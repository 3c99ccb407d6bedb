#pragma once

// A forward pass run again with one of its numbers moved. Ops that come before the number need not compute:
// what they made in the recorded pass can be put in their place.

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/autograd/pass_record.h"

namespace tessera {

// A pass in double that can be run again, with one of its numbers moved.
struct Experiment {
  PassRecord record;  // forward and backward
  // Runs forward alone, under a tape that keeps everything, and takes the steps of the record in their order.
  std::function<double()> loss;
  // The tensor that a run reads a leaf of this name from; null for a leaf that the program makes itself.
  std::function<const Tensor*(const std::string& name)> leaf;
};

// The ops of a forward pass in the order in which they run, those that are not recorded among them.
class Course {
 public:
  static constexpr size_t none = std::numeric_limits<size_t>::max();

  struct Event {
    size_t step;  // of the record; none for an op that is not recorded, because no gradient flows through it
    Tensor output;  // of such an op, which every run is given again
  };

  // Runs the pass once. Fails where it takes other steps than the record has, and for a loss that is not
  // finite.
  explicit Course(const Experiment& experiment);

  const std::vector<Event>& events() const { return events_; }
  size_t event_of_step(size_t step) const { return event_of_step_[step]; }
  // The first step that reads the value; none where there is none.
  size_t first_reader(size_t place) const { return first_reader_[place]; }
  // Whether a step from this one on reads it, or the program itself, as it reads the loss: no step does then.
  bool is_read_from(size_t place, size_t step) const {
    return first_reader_[place] == none || last_reader_[place] >= step;
  }

 private:
  std::vector<Event> events_;
  std::vector<size_t> event_of_step_, first_reader_;  // by step, by place
  std::vector<size_t> last_reader_;                   // 0 where there is none
};

enum class Ops { all, behind };

// The loss with h added to a cell of value `place`: to a leaf before the run, to a computed value as soon as
// it is there, so that whatever reads it reads the moved one. Runs all ops, or those behind the number.
double moved_loss(const Experiment& experiment, const Course& course, Ops ops, size_t place, int64_t cell,
                  double h);

}  // namespace tessera
