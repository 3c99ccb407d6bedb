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

// A place in the work of a stream; before it is recorded there is nothing to wait for.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() const;  // here, in stream()'s work
  void hold() const;    // what comes next on stream() runs after the event
  void wait() const;    // the host waits for it

 private:
  cudaEvent_t event_{};
};

}  // namespace tessera
