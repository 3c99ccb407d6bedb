#pragma once

#include <string_view>

namespace tessera {

// An operation, as the page of all gradients (engine/ops/catalog.h) and the inspector print it.
struct Op {
  std::string_view name;
  std::string_view forward;   // the formula of the output
  std::string_view backward;  // the formulas of the input gradients; dx is dL/dx
};

// An op of the catalog. The only constructor looks the name up at compile time, so that an op which the
// catalog does not list cannot be recorded: it does not compile. Defined in engine/ops/catalog.h.
class OpName {
 public:
  consteval OpName(const char* name);
  const Op& operator*() const { return *op_; }
  const Op* operator->() const { return op_; }

 private:
  const Op* op_;
};

}  // namespace tessera
