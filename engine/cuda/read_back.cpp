#include <cuda_runtime.h>

#include <cstring>

#include "engine/cuda/parts.h"
#include "engine/cuda/stream.h"

namespace tessera {

namespace {

// Copies into pinned memory and records an event behind the copies.
class PinnedReadBack final : public ReadBack {
 public:
  PinnedReadBack() { expect(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "read back"); }
  ~PinnedReadBack() override {
    cudaEventSynchronize(arrived_);
    cudaFreeHost(memory_);
    cudaEventDestroy(arrived_);
  }

  void start(std::span<const Tensor> tensors) override {
    finish();  // no copy into the memory is under way any more
    wanted_.clear();
    size_t bytes = 0;
    for (const Tensor& tensor : tensors) {
      wanted_.push_back({tensor.shape(), tensor.dtype(), bytes});
      bytes += (tensor.bytes() + 15) / 16 * 16;
    }
    make_room(bytes);
    for (size_t i = 0; i < wanted_.size(); ++i)
      expect(cudaMemcpyAsync(memory_ + wanted_[i].place, tensors[i].raw(), tensors[i].bytes(),
                             cudaMemcpyDeviceToHost, stream()),
             "read back");
    expect(cudaEventRecord(arrived_, stream()), "read back");
    forbid_early_start();
  }

  std::vector<Tensor> finish() override {
    expect(cudaEventSynchronize(arrived_), "read back");  // done at once if never recorded
    std::vector<Tensor> values;
    for (const Wanted& one : wanted_) {
      values.push_back(Tensor::empty(one.shape, one.dtype));
      std::memcpy(values.back().raw(), memory_ + one.place, values.back().bytes());
    }
    return values;
  }

 private:
  struct Wanted {
    Shape shape;
    DType dtype;
    size_t place;
  };

  void make_room(size_t bytes) {
    if (bytes <= room_) return;
    cudaFreeHost(memory_);
    memory_ = nullptr;
    void* made = nullptr;
    expect(cudaMallocHost(&made, bytes), "pinned memory");
    memory_ = static_cast<std::byte*>(made);
    room_ = bytes;
  }

  cudaEvent_t arrived_{};
  std::byte* memory_ = nullptr;
  size_t room_ = 0;
  std::vector<Wanted> wanted_;
};

}  // namespace

std::unique_ptr<ReadBack> make_pinned_read_back() { return std::make_unique<PinnedReadBack>(); }

}  // namespace tessera
