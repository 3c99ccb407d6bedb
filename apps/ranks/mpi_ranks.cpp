#include "apps/ranks/mpi_ranks.h"

#ifdef TESSERA_MPI

#define OMPI_SKIP_MPICXX
#include <mpi.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/ranks/heartbeat.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr size_t largest_message = size_t{1} << 30;  // MPI counts bytes in an int

// A message that another rank did not send so is a fault of a program, not of the network; MPI itself would
// end all with a code of its own.
void end_by_fault(MPI_Comm* comm, int* code, ...) {  // NOLINT(readability-non-const-parameter): MPI's type
  char why[MPI_MAX_ERROR_STRING] = "", host[256] = "";
  int rank = 0, size = 1, length = 0;
  MPI_Comm_rank(*comm, &rank);
  MPI_Comm_size(*comm, &size);
  MPI_Error_string(*code, why, &length);
  gethostname(host, sizeof host - 1);
  fmt::print(stderr, "error: rank {} of {} on {}: {}; so all ranks end\n", rank, size, host, why);
  std::fflush(stderr);
  _exit(2);
}

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Errhandler on_fault;
    MPI_Comm_create_errhandler(end_by_fault, &on_fault);
    MPI_Comm_set_errhandler(comm_, on_fault);  // which copies of it inherit
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    MPI_Comm host;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &local_rank_);
    MPI_Comm_size(host, &local_size_);
    MPI_Comm_free(&host);
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    heartbeat_ = std::make_unique<Heartbeat>(comm_, rank_, gather(*this, std::string(name)), calls_);
  }

  ~MpiRanks() override {
    heartbeat_->be_patient();   // the first one writes the report
    gather(*this, int64_t{0});  // until all are here
    heartbeat_->stop();
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  using Ranks::receive;
  using Ranks::send;

  int64_t send(int to, const void* bytes, size_t count, Channel channel) override {
    return begin(bytes, count, [&](const void* part, int length, MPI_Request* request) {
      MPI_Isend(part, length, MPI_BYTE, to, static_cast<int>(channel), comm_, request);
    });
  }

  int64_t receive(int from, void* bytes, size_t count, Channel channel) override {
    return begin(bytes, count, [&](const void* part, int length, MPI_Request* request) {
      MPI_Irecv(const_cast<void*>(part), length, MPI_BYTE, from, static_cast<int>(channel), comm_, request);
    });
  }

  int64_t done() override {
    if (heartbeat_) heartbeat_->note_call();
    const std::lock_guard lock(calls_);
    for (int ended = 1; first_open_ < open_.size() && ended;) {
      MPI_Test(&open_[first_open_], &ended, MPI_STATUS_IGNORE);
      if (ended) ++first_open_;
    }
    const auto left = static_cast<int64_t>(open_.size() - first_open_);
    if (left == 0) {
      open_.clear();
      first_open_ = 0;
      idle_ = 0;
    }
    return begun_ - left;
  }

 protected:
  int64_t begun() const override { return begun_; }

  // The other ranks of a machine may need this core.
  void pause() const override {
    if (++idle_ < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  template <class F> int64_t begin(const void* bytes, size_t count, F&& start) {
    const std::lock_guard lock(calls_);
    const auto* from = static_cast<const char*>(bytes);
    do {
      const size_t length = std::min(count, largest_message);
      open_.push_back(MPI_REQUEST_NULL);
      start(from, static_cast<int>(length), &open_.back());
      from += length;
      count -= length;
      ++begun_;
    } while (count > 0);
    return begun_;
  }

  std::mutex calls_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::vector<MPI_Request> open_;  ///< emptied where all are done, so that it keeps its memory
  size_t first_open_ = 0;
  int64_t begun_ = 0;
  mutable int64_t idle_ = 0;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<Ranks> start_mpi() {
  int provided = 0, size = 1;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS,
        "ranks: MPI does not start");
  check(provided >= MPI_THREAD_SERIALIZED, "ranks: this MPI does not let two threads call it in turn");
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 1) return std::make_unique<MpiRanks>();
  MPI_Finalize();
  return nullptr;
}

}  // namespace tessera

#else

namespace tessera {

bool has_mpi() { return false; }
std::unique_ptr<Ranks> start_mpi() { return nullptr; }

}  // namespace tessera

#endif
