#include "engine/core/device_backend.h"
#include "engine/core/error.h"
#include "engine/core/lap_clock.h"
#include "engine/core/read_back.h"
#include "engine/cuda/blas.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/late_sums.h"
#include "engine/cuda/parts.h"
#include "engine/cuda/stream.h"

namespace tessera {

namespace {

class CudaBackend final : public DeviceBackend {
 public:
  void make_ready() override { stream(); }

  void* allocate(size_t bytes) override {
    stream();  // the device is ready, or says why not
    void* block = nullptr;
    const cudaError_t status = cudaMalloc(&block, bytes);
    if (status == cudaSuccess) return block;
    cudaGetLastError();
    if (status != cudaErrorMemoryAllocation) expect(status, "memory");
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail("memory: no ", bytes, " bytes left on the GPU, ", free, " of ", total,
         " are free; try a smaller batch, --precision bf16 or --device cpu");
  }

  void release(void* block, size_t) override { expect(cudaFree(block), "memory"); }

  void zero(void* to, size_t bytes) override {
    if (bytes == 0) return;
    expect(cudaMemsetAsync(to, 0, bytes, stream()), "zero");
    forbid_early_start();
  }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    expect(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
    forbid_early_start();
  }

  void copy_to_host(void* host, const void* from, size_t bytes) override {
    check(!Graph::capturing(), "graph: a step that reads numbers back to the host cannot be captured; use ",
          "--no-graph");
    expect(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream()), "copy to the host");
    forbid_early_start();
    synchronize();
  }

  // Within a capture the numbers are constants of the graph: they are copied now, once for all replays.
  void copy_from_host(void* to, const void* host, size_t bytes) override {
    if (bytes == 0) return;
    if (Graph::capturing()) return Graph::copy_constant(to, host, bytes);
    upload(to, host, bytes);
  }

  void convert(int64_t n, DType from_type, const void* from, DType to_type, void* to) override {
    convert_on_cuda(n, from_type, from, to_type, to);
  }
  void fill(int64_t n, double value, DType type, void* to) override { fill_on_cuda(n, value, type, to); }

  void begin_backward() override { tessera::begin_backward(); }
  void before_reading(const void* gradient) override { tessera::before_reading(gradient); }
  void end_backward() override { tessera::end_backward(); }
  std::unique_ptr<LapClock> make_lap_clock() override { return make_stream_clock(); }
  std::unique_ptr<ReadBack> make_read_back() override { return make_pinned_read_back(); }
  std::unique_ptr<Replay> record_replay(const std::function<void()>& work) override {
    return std::make_unique<Graph>(work);
  }
  void allow_tf32(bool allowed) override { set_tf32(allowed); }
};

}  // namespace

DeviceBackend& cuda_backend() {
  static CudaBackend& one = *new CudaBackend;  // tensors of static life may outlast any order of destruction
  return one;
}

}  // namespace tessera
