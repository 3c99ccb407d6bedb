#pragma once

#include <string_view>

namespace tessera {

/// An operation with its formulas, as the list of all ops (engine/ops/catalog.h) and the inspector show it.
struct Op {
  std::string_view name;
  std::string_view forward;   ///< the formula of the output
  std::string_view backward;  ///< the formulas of the input gradients; dx is dL/dx
};

/// Names an op of the catalog. Its only constructor looks the name up at compile time, so that recording an
/// op which the catalog does not list does not compile. The constructor is defined in engine/ops/catalog.h.
class OpName {
 public:
  consteval OpName(const char* name);
  const Op& operator*() const { return *op_; }
  const Op* operator->() const { return op_; }

 private:
  const Op* op_;
};

}  // namespace tessera
