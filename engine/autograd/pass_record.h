#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/autograd/attribute.h"
#include "engine/autograd/op.h"
#include "engine/core/named_tensors.h"
#include "engine/core/tensor.h"

namespace tessera {

class Tape;

/// One forward and backward pass as it was computed: every recorded value with its gradient under a stable
/// name, and the steps in the order in which they ran, with what each reads and makes.
///
///   Tape tape;
///   tape.keep_all();
///   const Tensor loss = ...;
///   tape.backward(loss);
///   const PassRecord record(tape, {{"w", w}, {"loss", loss}});
///   record.value("blocks.5.attn.scores").gradient;
///
/// A name is the path of the module that ran the op, then the role that the module gave to the value
/// (name_value()), or "out" for the last value of the module, or else the op: "blocks.5.attn.scores",
/// "blocks.5.mlp.fc1.out", "blocks.5.attn.permute". The second value of one name has ".2" behind it. What a
/// module returns is called by the path of every module that it is the last value of:
/// "blocks.5.attn.proj.out" is "blocks.5.attn.out" too.
class PassRecord {
 public:
  enum class Kind { leaf, constant, computed };

  struct Value {
    std::string name;
    std::vector<std::string> aliases;  ///< its other names
    Kind kind = Kind::computed;
    Tensor value;
    Tensor gradient;  ///< of the value's shape; undefined where none flowed to it, and for constants
    int64_t readers_left_out = 0;  ///< steps that read it and are not in this part of a record, see part()
  };

  static constexpr size_t left_out = static_cast<size_t>(-1);

  struct Step {
    const Op* op = nullptr;
    std::string module;          ///< the path of the module that ran it
    std::vector<size_t> inputs;  ///< places in values(); left_out for an optional input that was not given
    std::vector<Shape> shapes;   ///< of the inputs as the op read them: a value may be read reshaped
    size_t output = 0;           ///< a place in values()
    Attributes attributes;       ///< what the op was asked beside its inputs
  };

  /// Reads a tape that keeps everything (Tape::keep_all) after its backward(). `known` names leaves,
  /// constants and computed values: parameters, the input, the loss. Fails for a tape whose steps hold no
  /// values.
  PassRecord(const Tape& tape, const NamedTensors& known);

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Step>& steps() const { return steps_; }

  /// The value of that name or alias. Fails, with the nearest known name, where there is none.
  const Value& value(const std::string& name) const;

  /// Converts every floating value and gradient to this type.
  void convert(DType dtype);

  /// These steps alone, in their order, with the values that they read and make and those named in `also`.
  /// A computed value need not have a step that makes it then.
  PassRecord part(const std::function<bool(const Step&)>& keep, const std::vector<std::string>& also) const;

 private:
  PassRecord() = default;

  friend class PassRecorder;

  std::vector<Value> values_;
  std::vector<Step> steps_;
};

}  // namespace tessera
