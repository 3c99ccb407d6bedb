#include "engine/cuda/parts.h"
#include "engine/cuda/stream.h"

namespace tessera {

namespace {

// Records an event for each mark. Events are made once and used again.
class StreamClock final : public LapClock {
 public:
  ~StreamClock() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  void mark() override {
    if (marks_ == events_.size()) {
      events_.push_back(nullptr);
      expect(cudaEventCreate(&events_.back()), "clock");
    }
    expect(cudaEventRecord(events_[marks_], stream()), "clock");
    ++marks_;
  }

  std::vector<double> laps() override {
    std::vector<double> seconds;
    if (marks_ > 0) expect(cudaEventSynchronize(events_[marks_ - 1]), "clock");
    for (size_t i = 1; i < marks_; ++i) {
      float milliseconds = 0;
      expect(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]), "clock");
      seconds.push_back(1e-3 * double{milliseconds});
    }
    marks_ = 0;
    return seconds;
  }

 private:
  std::vector<cudaEvent_t> events_;
  size_t marks_ = 0;
};

}  // namespace

std::unique_ptr<LapClock> make_stream_clock() { return std::make_unique<StreamClock>(); }

}  // namespace tessera
