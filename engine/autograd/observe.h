#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/autograd/op.h"
#include "engine/core/tensor.h"

namespace tessera {

// The module whose forward pass runs on this thread, by its name in the checkpoint ("blocks.0.attn.qkv").
// A module's forward opens one over its own path.
class Inside {
 public:
  explicit Inside(const std::string& path) : outer_(current_) { current_ = &path; }
  ~Inside() { current_ = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static std::string path() { return current_ ? *current_ : std::string(); }

 private:
  inline static thread_local const std::string* current_ = nullptr;
  const std::string* outer_;
};

// One op that ran forward.
struct Event {
  const Op& op;
  const Tensor& output;
  int64_t macs;  // multiply-accumulates, by the rule of reference/SIZES.md
};

// One step of a tape whose backward has run.
struct BackwardEvent {
  const Op& op;
  const std::string& path;  // the module that ran the op forward
};

// While one lives, it is told of every op that runs on this thread, recorded or not, and of every step that a
// tape reads back.
class Observer {
 public:
  using Forward = std::function<void(const Event&)>;
  using Backward = std::function<void(const BackwardEvent&)>;

  explicit Observer(Forward forward, Backward backward = nullptr)
      : forward_(std::move(forward)), backward_(std::move(backward)), outer_(current_) {
    current_ = this;
  }
  ~Observer() { current_ = outer_; }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  static void tell(const Event& event) {
    if (current_) current_->forward_(event);
  }
  static void tell(const BackwardEvent& event) {
    if (current_ && current_->backward_) current_->backward_(event);
  }

 private:
  inline static thread_local Observer* current_ = nullptr;
  Forward forward_;
  Backward backward_;
  Observer* outer_;
};

}  // namespace tessera
