#include "engine/core/device_peers.h"
#include "engine/core/error.h"
#include "engine/cuda/stream.h"

#ifdef TESSERA_NCCL

#include <nccl.h>

#include <cstring>
#include <exception>

namespace tessera {

namespace {

void expect_nccl(ncclResult_t status, const char* what) {
  check(status == ncclSuccess, "ranks: NCCL: ", what, ": ", ncclGetErrorString(status),
        "; NCCL_DEBUG=INFO tells more");
}

class NcclPeers final : public DevicePeers {
 public:
  NcclPeers(const std::string& key, int rank, int size) {
    ncclUniqueId id;
    check(key.size() == sizeof id.internal, "ranks: a key of ", key.size(), " bytes is none of NCCL's");
    std::memcpy(id.internal, key.data(), key.size());
    stream();  // the device is ready, or says why not
    expect_nccl(ncclCommInitRank(&peers_, size, id, rank), "joining the GPUs of all ranks");
  }

  // After an error the other processes may never take part in what is queued.
  ~NcclPeers() override {
    if (std::uncaught_exceptions() > 0) {
      ncclCommAbort(peers_);
      return;
    }
    cudaStreamSynchronize(stream());
    ncclCommDestroy(peers_);
  }

  void begin() override { expect_nccl(ncclGroupStart(), "a group of transfers"); }
  void send(int to, const void* bytes, size_t count) override {
    expect_nccl(ncclSend(bytes, count, ncclUint8, to, peers_, stream()), "sending");
  }
  void receive(int from, void* bytes, size_t count) override {
    expect_nccl(ncclRecv(bytes, count, ncclUint8, from, peers_, stream()), "receiving");
  }
  void end() override {
    expect_nccl(ncclGroupEnd(), "a group of transfers");
    forbid_early_start();
  }

  void add_up(void* numbers, int64_t n, DType type) override {
    check(type == DType::f32 || type == DType::bf16, "ranks: NCCL adds f32 and bf16 numbers, not ", type);
    expect_nccl(ncclAllReduce(numbers, numbers, static_cast<size_t>(n),
                              type == DType::f32 ? ncclFloat32 : ncclBfloat16, ncclSum, peers_, stream()),
                "a sum over all ranks");
    forbid_early_start();
  }

 private:
  ncclComm_t peers_ = nullptr;
};

}  // namespace

std::string cuda_place() {
  stream();
  char place[64] = "";
  int device = 0;
  expect(cudaGetDevice(&device), "the GPU in use");
  expect(cudaDeviceGetPCIBusId(place, sizeof place, device), "the GPU's place on its bus");
  return place;
}

std::string new_cuda_peers_key() {
  ncclUniqueId id;
  expect_nccl(ncclGetUniqueId(&id), "a key for the ranks");
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<DevicePeers> join_cuda_peers(const std::string& key, int rank, int size) {
  return std::make_unique<NcclPeers>(key, rank, size);
}

}  // namespace tessera

#else

namespace tessera {

std::string cuda_place() { return ""; }
std::string new_cuda_peers_key() { fail("ranks: this build has no NCCL"); }
std::unique_ptr<DevicePeers> join_cuda_peers(const std::string&, int, int) {
  fail("ranks: this build has no NCCL");
}

}  // namespace tessera

#endif
