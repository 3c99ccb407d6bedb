#pragma once

// NCCL between processes of one machine, for the emulated backend: a message is a file of a folder that the
// key names. Transfers wait in the queue of their stream, as kernels do. A thread runs the queues meanwhile,
// as a GPU does of its own: else a process whose host waits for others would keep back what they wait for.

#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

enum ncclResult_t { ncclSuccess, ncclSystemError };
enum ncclDataType_t { ncclUint8, ncclFloat32, ncclBfloat16 };
enum ncclRedOp_t { ncclSum };
struct ncclUniqueId {
  char internal[128];
};

namespace emulator {

class Peers {
 public:
  Peers(std::string folder, int rank, int size)
      : folder_(std::move(folder)), rank_(rank), size_(size), sent_(size), received_(size) {
    device_ = std::jthread([](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
        if (const std::unique_lock lock(running, std::try_to_lock); lock) run_all();
    });
  }
  ~Peers() {
    device_.request_stop();
    device_.join();
    std::error_code others_need_it;
    std::filesystem::remove(folder_, others_need_it);  // the last one removes it, as it is empty then
  }

  int rank() const { return rank_; }
  int size() const { return size_; }

  void send(int to, const void* bytes, size_t count) {
    const std::string place = message(rank_, to, sent_[static_cast<size_t>(to)]++);
    std::ofstream(place + ".part", std::ios::binary).write(static_cast<const char*>(bytes), count);
    std::filesystem::rename(place + ".part", place);
  }

  void receive(int from, void* bytes, size_t count) {
    const std::string place = message(from, rank_, received_[static_cast<size_t>(from)]++);
    while (!std::filesystem::exists(place)) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (std::filesystem::file_size(place) != count)
      refuse("a message has another length than its receiver wants");
    std::ifstream(place, std::ios::binary).read(static_cast<char*>(bytes), count);
    std::filesystem::remove(place);
  }

 private:
  std::string message(int from, int to, int64_t number) const {
    return folder_ + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
  }

  std::string folder_;
  int rank_, size_;
  std::vector<int64_t> sent_, received_;
  std::jthread device_;
};

// What stands between ncclGroupStart and ncclGroupEnd: all is sent before anything is received.
struct Group {
  std::vector<Work> sends, receipts;
  cudaStream_t stream = nullptr;
};
inline Group group;

}  // namespace emulator

using ncclComm_t = emulator::Peers*;

inline const char* ncclGetErrorString(ncclResult_t) { return "an error of the emulator"; }

inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  const char* shared = std::getenv("TMPDIR");
  std::snprintf(id->internal, sizeof id->internal, "%s/emulated-nccl-XXXXXX", shared ? shared : "/dev/shm");
  return mkdtemp(id->internal) ? ncclSuccess : ncclSystemError;
}

inline ncclResult_t ncclCommInitRank(ncclComm_t* peers, int size, ncclUniqueId id, int rank) {
  return *peers = new emulator::Peers(id.internal, rank, size), ncclSuccess;
}

inline ncclResult_t ncclCommAbort(ncclComm_t peers) { return delete peers, ncclSuccess; }
inline ncclResult_t ncclCommDestroy(ncclComm_t peers) { return delete peers, ncclSuccess; }

inline ncclResult_t ncclGroupStart() { return emulator::group = {}, ncclSuccess; }

inline ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t, int to, ncclComm_t peers,
                             cudaStream_t stream) {
  emulator::group.stream = stream;
  emulator::group.sends.push_back([=] { peers->send(to, bytes, count); });
  return ncclSuccess;
}

inline ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t, int from, ncclComm_t peers,
                             cudaStream_t stream) {
  emulator::group.stream = stream;
  emulator::group.receipts.push_back([=] { peers->receive(from, bytes, count); });
  return ncclSuccess;
}

inline ncclResult_t ncclGroupEnd() {
  if (emulator::group.stream == nullptr) return ncclSuccess;
  const auto work = [group = emulator::group] {
    for (const emulator::Work& send : group.sends) send();
    for (const emulator::Work& receive : group.receipts) receive();
  };
  return emulator::group.stream->take(work, false), ncclSuccess;
}

// Of f32 numbers alone, in the order of the ranks.
inline ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                                  ncclComm_t peers, cudaStream_t stream) {
  if (type != ncclFloat32) return ncclSystemError;
  const auto work = [=] {
    const size_t bytes = count * sizeof(float);
    std::vector<float> own(count), total(count), theirs(count);
    std::memcpy(own.data(), from, bytes);
    for (int rank = 0; rank < peers->size(); ++rank)
      if (rank != peers->rank()) peers->send(rank, own.data(), bytes);
    for (int rank = 0; rank < peers->size(); ++rank) {
      if (rank != peers->rank()) peers->receive(rank, theirs.data(), bytes);
      const std::vector<float>& its = rank == peers->rank() ? own : theirs;
      for (size_t i = 0; i < count; ++i) total[i] += its[i];
    }
    std::memcpy(to, total.data(), bytes);
  };
  return stream->take(work, false), ncclSuccess;
}

// The GPU of the one process that asks: each emulates one of its own.
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetPCIBusId(char* place, int length, int) {
  std::snprintf(place, static_cast<size_t>(length), "emulated %d", static_cast<int>(getpid()));
  return cudaSuccess;
}
