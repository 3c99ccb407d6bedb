#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/named_tensors.h"

namespace tessera {

struct Parameter {
  std::string name;  // as in the checkpoint: "blocks.0.attn.qkv.weight"
  Tensor value;
  bool trainable;          // else a buffer: saved, never stepped
  bool statistic = false;  // a buffer that forward passes in training move, of what they see
};

// Every parameter and buffer of a model, in the order in which they were made. Only a Scope adds to it.
class Parameters {
 public:
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  size_t size() const { return all_.size(); }

  const Tensor* find(std::string_view name) const;  // null where there is none
  int64_t trainable_count() const;                  // learned numbers
  NamedTensors state() const;                       // names and values, buffers too

  // Copies the numbers of `state` in, converting the type. Whatever is missing, unknown or of another shape
  // is said in one error that lists all of it; then nothing has changed. `where` names the source.
  void load(const NamedTensors& state, const std::string& where) const;

  void zero_grad() const;

 private:
  friend class Scope;
  void add(Parameter parameter);

  std::vector<Parameter> all_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace tessera
