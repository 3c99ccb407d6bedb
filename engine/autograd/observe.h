#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/autograd/op.h"
#include "engine/core/tensor.h"
#include "engine/core/thread_scope.h"

namespace tessera {

/// Names the module whose forward pass runs on this thread, as the checkpoint does ("blocks.0.attn.qkv"). A
/// module's forward opens one over its own path, which must outlive the scope.
class ModuleScope : public ThreadScope<ModuleScope> {
 public:
  explicit ModuleScope(const std::string& path) : path_(path) {}

  /// The innermost module's path; empty outside of modules.
  static std::string path() { return current() ? current()->path_ : std::string(); }

 private:
  const std::string& path_;
};

/// An op that has run forward.
struct ForwardEvent {
  const Op& op;
  const Tensor& output;
  int64_t macs;  ///< multiply-accumulates; only matrix products, convolutions, attention and layer norm count
  int64_t bytes;  ///< of the inputs and the output
};

/// A step of a tape whose backward has run.
struct BackwardEvent {
  const Op& op;
  const std::string& path;  ///< the module that ran the op forward
  int64_t macs;             ///< of the op's forward pass
  int64_t bytes;            ///< of the gradients of the output and of those inputs that have one
};

/// Is told of every op that runs on this thread, recorded or not, and of every step that a tape reads back.
/// Of nested observers only the innermost one is told.
class Observer : public ThreadScope<Observer> {
 public:
  using Forward = std::function<void(const ForwardEvent&)>;
  using Backward = std::function<void(const BackwardEvent&)>;

  explicit Observer(Forward forward, Backward backward = nullptr)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}

  static void tell(const ForwardEvent& event) {
    if (current()) current()->forward_(event);
  }
  static void tell(const BackwardEvent& event) {
    if (current() && current()->backward_) current()->backward_(event);
  }

 private:
  Forward forward_;
  Backward backward_;
};

}  // namespace tessera
