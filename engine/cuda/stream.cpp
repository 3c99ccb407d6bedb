#include "engine/cuda/stream.h"

#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/core/error.h"
#include "engine/cuda/graph.h"
#include "engine/cuda/side_stream.h"

namespace tessera {

namespace {

constexpr const char* elsewhere = "; or use --device cpu";

// "13.0" of 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void check_driver(cudaError_t status) {
  if (status == cudaSuccess) return;
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  check(driver > 0, "device: no NVIDIA driver is here; install one", elsewhere);
  check(status != cudaErrorInsufficientDriver, "device: the driver knows CUDA ", version_text(driver),
        ", this build needs ", version_text(runtime), "; update the driver", elsewhere);
  check(status != cudaErrorNoDevice, "device: no NVIDIA GPU is here; look at nvidia-smi and at ",
        "CUDA_VISIBLE_DEVICES", elsewhere);
  fail("device: ", cudaGetErrorString(status), elsewhere);
}

bool is_set_to(const char* variable, std::string_view value) {
  const char* text = std::getenv(variable);
  return text && text == value;
}

struct Device0 {
  cudaStream_t stream{};
  Gpu gpu{};

  Device0() {
    int count = 0;
    check_driver(cudaGetDeviceCount(&count));
    check_driver(count > 0 ? cudaSuccess : cudaErrorNoDevice);
    const auto read = [](cudaDeviceAttr attribute) {
      int value = 0;
      expect(cudaDeviceGetAttribute(&value, attribute, 0), "device");
      return value;
    };
    const int major = read(cudaDevAttrComputeCapabilityMajor),
              minor = read(cudaDevAttrComputeCapabilityMinor);
    check(major >= 8, "device: the GPU has compute capability ", major, ".", minor,
          ", 8.0 or newer is wanted (Ampere, 2020)", elsewhere);
    check_driver(cudaSetDevice(0));
    const bool overlap = !is_set_to("TESSERA_OVERLAP", "0");
    gpu = {read(cudaDevAttrMultiProcessorCount), read(cudaDevAttrMaxSharedMemoryPerBlockOptin),
           overlap && !is_set_to("TESSERA_BRANCHES", "0"),
           overlap && !is_set_to("TESSERA_EARLY", "0") && major >= 9 && kernels_wait_for_previous(),
           is_set_to("TESSERA_SYNC", "1")};
    expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "device");
  }
};

// Made at first use; if that fails, the next use tries again. Never destroyed, because static tensors may be
// destroyed later.
const Device0& device0() {
  static const Device0& device = *new Device0;
  return device;
}

thread_local cudaStream_t side = nullptr;  // this thread's side stream, if it is on one
// Whether the next kernel of the main stream [0], or of a side stream [1], must not start early.
thread_local bool no_early_start[2] = {};

}  // namespace

cudaStream_t stream() { return side ? side : device0().stream; }

const Gpu& gpu() { return device0().gpu; }

void wait_for_kernel(const void* kernel) {
  if (Graph::capturing()) return;
  const char* name = nullptr;
  cudaFuncGetName(&name, kernel);
  expect(cudaStreamSynchronize(stream()), name ? name : "kernel");
}

void allow_shared(const void* kernel, size_t bytes) {
  static std::mutex mutex;
  static std::unordered_map<const void*, size_t>& allowed = *new std::unordered_map<const void*, size_t>;
  const std::lock_guard lock(mutex);
  size_t& most = allowed[kernel];
  if (bytes <= most) return;
  cudaFuncAttributes attributes{};
  expect(cudaFuncGetAttributes(&attributes, kernel), "kernel");
  const size_t wanted = bytes + attributes.sharedSizeBytes;  // dynamic and static
  check(wanted <= static_cast<size_t>(gpu().shared_bytes), "kernel: ", wanted,
        " bytes of shared memory a block are wanted, this GPU has ", gpu().shared_bytes,
        "; try narrower heads or --precision bf16");
  expect(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
         "kernel");
  most = bytes;
}

void expect(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears an error that is not sticky
  const std::string_view name = cudaGetErrorName(status);
  fail(what, ": ", name, ": ", cudaGetErrorString(status),
       name == "cudaErrorNoKernelImageForDevice"
           ? "; this build has no code for this GPU, configure it with -DCMAKE_CUDA_ARCHITECTURES=native"
           : "");
}

SideStream::SideStream() {
  stream();  // the device is ready
  expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "device");
}

SideStream::~SideStream() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

SideStream::On::On(const SideStream& on) : outer_(side) { side = on.stream_; }
SideStream::On::~On() { side = outer_; }

bool on_side_stream() { return side != nullptr; }

bool may_start_early() { return gpu().early && !std::exchange(no_early_start[on_side_stream()], false); }
void forbid_early_start() { no_early_start[on_side_stream()] = true; }

StreamEvent::StreamEvent() { expect(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "device"); }
StreamEvent::~StreamEvent() { cudaEventDestroy(event_); }
void StreamEvent::record() const { expect(cudaEventRecord(event_, stream()), "cuda"); }
void StreamEvent::make_stream_wait() const {
  expect(cudaStreamWaitEvent(stream(), event_, 0), "cuda");
  forbid_early_start();
}
void StreamEvent::make_host_wait() const { expect(cudaEventSynchronize(event_), "cuda"); }

void synchronize() { expect(cudaStreamSynchronize(stream()), "cuda"); }

}  // namespace tessera
