#pragma once

// Work beside that of stream(): copies and kernels that prepare what a later step reads.

#include "engine/cuda/stream.h"

namespace tessera {

// A stream of its own; it lives until its work is done.
class SideStream {
 public:
  SideStream();
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // While one lives, stream() is the side stream on this thread.
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

bool on_side_stream();  // whether this thread is on one

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

// Two parts of an op's work that do not touch each other's: while one lives, what run() does and what is done
// outside of it may run at the same time on the GPU, in a step that is captured; all is done before what
// comes after. Elsewhere, or where it is not `wanted` or kernels may not overlap, it changes nothing. Memory
// that the parts use must outlive it.
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
