#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/named_tensors.h"

namespace tessera {

/// A named tensor of a model: a trainable parameter or a buffer.
struct Parameter {
  std::string name;  ///< as in the checkpoint: "blocks.0.attn.qkv.weight"
  Tensor value;
  bool trainable;          ///< else a buffer: saved, but no optimizer changes it
  bool statistic = false;  ///< a buffer that forward passes in training update, such as a running mean
};

/// All parameters and buffers of a model, in the order in which they were made. Only a Scope adds to them.
class Parameters {
 public:
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  size_t size() const { return all_.size(); }

  const Tensor* find(std::string_view name) const;  ///< null where there is none
  int64_t trainable_count() const;                  ///< elements of all trainable parameters
  NamedTensors state() const;                       ///< names and values of parameters and buffers

  /// Copies the values of `state` into the tensors of the same names, converted to their types. Fails, with
  /// nothing changed, if any name is missing or unknown or any shape differs; one error lists them all and
  /// begins with `where`, the source.
  void load(const NamedTensors& state, const std::string& where) const;

  void zero_grad() const;

 private:
  friend class Scope;
  void add(Parameter parameter);

  std::vector<Parameter> all_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace tessera
