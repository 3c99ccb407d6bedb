#include <cstring>

#include "engine/core/error.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/parts.h"

namespace tessera {

namespace {

constexpr size_t most_tensors = 8;

struct Pieces {
  struct Piece {
    const unsigned char* from;
    size_t place, bytes;
  } at[most_tensors];
};

// Block b copies piece b to its place. The numbers are few, and one kernel that writes to the host's memory
// costs less than a copy for each tensor.
__global__ void gather(Pieces pieces, unsigned char* to) {
  wait_for_previous_kernel();
  const auto [from, place, bytes] = pieces.at[blockIdx.x];
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) to[place + i] = from[i];
}

// Gathers the numbers in pinned memory, which the device can write, and records an event behind that.
class PinnedReadBack final : public ReadBack {
 public:
  PinnedReadBack() { expect(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "read back"); }
  ~PinnedReadBack() override {
    cudaEventSynchronize(arrived_);
    cudaFreeHost(memory_);
    cudaEventDestroy(arrived_);
  }

  void start(std::span<const Tensor> tensors) override {
    check(tensors.size() <= most_tensors, "read back: ", tensors.size(), " tensors, at most ", most_tensors);
    finish();  // no copy into the memory is under way any more
    wanted_.clear();
    size_t bytes = 0;
    Pieces pieces{};
    for (const Tensor& tensor : tensors) {
      pieces.at[wanted_.size()] = {static_cast<const unsigned char*>(tensor.raw()), bytes, tensor.bytes()};
      wanted_.push_back({tensor.shape(), tensor.dtype(), bytes});
      bytes += (tensor.bytes() + 15) / 16 * 16;
    }
    make_room(bytes);
    if (bytes > 0)
      launch(gather, LaunchGrid{dim3(static_cast<unsigned>(tensors.size()))}, pieces,
             reinterpret_cast<unsigned char*>(memory_));
    expect(cudaEventRecord(arrived_, stream()), "read back");
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
