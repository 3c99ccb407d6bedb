#pragma once

// What a lesson is: a small program on few numbers, whose whole pass is shown, and the words beside it.

#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/autograd/pass_record.h"
#include "engine/autograd/tape.h"
#include "engine/core/named_tensors.h"

namespace tessera {

// The numbers that a lesson starts from. The first run of its program makes them. A later run is given the
// same tensors, with whatever was written into them meanwhile: one number moved for a proof, or all of them
// by a step of an optimizer.
class Numbers {
 public:
  // Makes numbers of this type. `off` names a term that the program leaves out; empty for none.
  explicit Numbers(DType dtype, std::string off = {}) : dtype_(dtype), off_(std::move(off)) {}

  // A tensor whose gradient is wanted, without one from before; its values where it is new.
  Tensor leaf(const std::string& name, const Shape& shape, std::initializer_list<double> values);
  // A tensor that is given: a target, a table of offsets.
  Tensor constant(const std::string& name, const Shape& shape, std::initializer_list<double> values);

  // Whether the program has this term.
  bool has(std::string_view term) const { return off_ != term; }
  const std::string& off() const { return off_; }
  DType dtype() const { return dtype_; }

  // The same numbers, apart from these, in this type, for a program that leaves out `off`.
  Numbers copy(DType dtype, const std::string& off = {}) const;

  // These numbers and the program's results, as a PassRecord wants them.
  NamedTensors with(const NamedTensors& results) const;
  const NamedTensors& all() const { return all_; }

 private:
  Tensor& find_or_make(const std::string& name, const Shape& shape, std::initializer_list<double> values);

  DType dtype_;
  std::string off_;
  NamedTensors all_;
};

// x, which the record calls by this name.
inline Tensor named(std::string_view role, const Tensor& x) {
  name_value(x, role);
  return x;
}

struct Lesson {
  // A part of the program that can be left out, to see what it does.
  struct Term {
    const char *name = "", *title = "";  // "prior", "spatial prior"
  };

  const char *name, *title;
  const char* look_at;  // two or three sentences
  const char *question, *answer;
  PassRecord (*run)(Numbers& numbers);  // the program: forward and backward, with everything recorded
  const char* loss = "loss";            // the value that its backward pass starts from
  Term term = {};                       // an empty name: none
};

}  // namespace tessera
