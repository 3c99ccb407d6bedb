#pragma once

namespace tessera {

/// The base of every setting that holds on one thread for the length of a C++ scope:
///
///   class DryRun : public ThreadScope<DryRun> {};
///   { const DryRun dry;  f(); }                      // f() finds DryRun::current()
///
/// Scopes of one kind nest; current() is the innermost one, outer() leads outwards. A scope ends on the
/// thread on which it began, in any order. These are all of them:
///
///   DryRun            kernels do not run                          engine/core/dispatch.h
///   SerialLoops       parallel loops stay on the thread           engine/core/parallel.h
///   ConstantBlocks    a captured graph's memory for constants     engine/core/pool.h
///   TapeScope         the tape that records (Tape, NoRecording)   engine/autograd/tape.h
///   FieldRecord       notes which fields a reader asks for        engine/io/field_record.h
///   ModuleScope       the module whose forward pass runs          engine/autograd/observe.h
///   Observer          is told of every op                         engine/autograd/observe.h
///   PlainAttention    the definition instead of the fused op      models/parts/attention.h
///   TokenLayoutScope  where attention's tokens lie on the image   models/parts/token_layout.h
///   DecayWatch        is told of every spatial decay              models/parts/decay_watch.h
///
/// Five settings hold for the whole process: set_threads() and SmallChunks (parallel.h), allow_tf32()
/// (replay.h), poison_new_storage() (storage.h), FrozenWeights (frozen_weights.h).
template <class Scope> class ThreadScope {
 public:
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

  /// The innermost scope of this kind on this thread, or null.
  static Scope* current() { return static_cast<Scope*>(innermost_); }
  /// The scope around this one, or null.
  Scope* outer() const { return static_cast<Scope*>(outer_); }
  /// Whether any scope of this kind lives on this thread.
  static bool active() { return innermost_ != nullptr; }

 protected:
  ThreadScope() : outer_(innermost_) { innermost_ = this; }
  ~ThreadScope() {
    ThreadScope** at = &innermost_;
    while (*at != this) at = &(*at)->outer_;
    *at = outer_;
  }

 private:
  inline static thread_local ThreadScope* innermost_ = nullptr;
  ThreadScope* outer_;
};

}  // namespace tessera
