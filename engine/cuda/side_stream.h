#pragma once

// Work that runs beside that of the main stream: copies and kernels that prepare data for later steps.

#include "engine/cuda/stream.h"

namespace tessera {

// A second stream. Its destructor waits until its work is done.
class SideStream {
 public:
  SideStream();
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // Makes stream() return the side stream on this thread for a scope.
  class On {
   public:
    explicit On(const SideStream& on);
    ~On();
    On(const On&) = delete;
    On& operator=(const On&) = delete;

   private:
    cudaStream_t outer_;
  };

 private:
  cudaStream_t stream_{};
};

bool on_side_stream();  // whether stream() is a side stream on this thread

// A point in the work of a stream. Before it is recorded nothing waits for it.
class StreamEvent {
 public:
  StreamEvent();
  ~StreamEvent();
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  void record() const;            // behind all work that was begun on stream()
  void make_stream_wait() const;  // work that is begun on stream() from now on runs after the event
  void make_host_wait() const;    // returns when the event is reached

 private:
  cudaEvent_t event_{};
};

// Splits an op's work into two independent parts. In a step that is captured, the work of run() and the work
// outside of it may run at the same time on the GPU while the Branch lives; work after its end waits for
// both. Outside of captures, if it is not `wanted`, and if kernels must not overlap, everything runs in
// order. Memory that the parts use must outlive the Branch.
class Branch {
 public:
  explicit Branch(bool wanted);
  ~Branch();
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  template <class F> void run(const F& work) const {
    if (!stream_) return work();
    const SideStream::On on(*stream_);
    work();
  }

 private:
  const SideStream* stream_ = nullptr;
};

}  // namespace tessera
