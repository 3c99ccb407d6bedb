#include "apps/ranks/mpi_ranks.h"

#ifdef TESSERA_MPI

#define OMPI_SKIP_MPICXX
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/ranks/launch.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t largest_message = size_t{1} << 30;  // MPI counts bytes in an int
constexpr std::chrono::seconds longest_silence{20};
constexpr std::chrono::milliseconds between_beats{1000};

constexpr std::chrono::seconds longest_work{600};  // without a call for messages

// A message that another rank did not send so is a fault of a program, not of the network; MPI itself would
// end all with a code of its own.
void end_by_fault(MPI_Comm* comm, int* code, ...) {
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

double milliseconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// What this process has done besides the thread that asks: milliseconds of its processors, and blocks and
// pages from and to disks. A process whose threads all wait does next to nothing.
int64_t work_of_process() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double computed =
      milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - milliseconds_of(CLOCK_THREAD_CPUTIME_ID);
  return static_cast<int64_t>(computed) + used.ru_inblock + used.ru_oublock + used.ru_majflt;
}
constexpr int64_t least_work = 10;  // between two beats, of a rank that does anything

/// Tells all other ranks that this one is alive, how often it has called for messages, and how much it has
/// worked; and notes when each of them was heard last, and when its numbers last grew. `calls` guards MPI.
class Heartbeat {
 public:
  Heartbeat(MPI_Comm world, int rank, std::vector<std::string> hosts, std::mutex& calls)
      : rank_(rank),
        hosts_(std::move(hosts)),
        calls_(calls),
        peers_(hosts_.size()),
        patience_(rank_patience()) {
    MPI_Comm_dup(world, &comm_);
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < peers_.size(); ++i) {
      peers_[i].heard = peers_[i].moved = peers_[i].worked = now;
      if (static_cast<int>(i) != rank_) listen(i);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void note_call() { ++calls_made_; }

  /// From here on this rank waits for others that may have much to do.
  void be_patient() { patient_ = true; }

  /// No rank is missed from here on. All call it before the first of them ends.
  void stop() {
    thread_.request_stop();
    thread_.join();
    for (Peer& peer : peers_)
      for (MPI_Request* each : {&peer.hears, &peer.tells})
        if (*each != MPI_REQUEST_NULL) {
          MPI_Cancel(each);
          MPI_Request_free(each);
        }
  }

 private:
  struct Beat {
    int64_t calls = 0, work = 0;
  };

  struct Peer {
    MPI_Request hears = MPI_REQUEST_NULL, tells = MPI_REQUEST_NULL;
    Beat comes, told, last;
    Clock::time_point heard{}, moved{}, worked{};  ///< moved: called for messages
  };

  void listen(size_t i) {
    MPI_Irecv(&peers_[i].comes, 2, MPI_INT64_T, static_cast<int>(i), 0, comm_, &peers_[i].hears);
  }

  void run(const std::stop_token& stop) {
    Clock::time_point before = Clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(between_beats / 10);
      const Clock::time_point now = Clock::now();
      // A rank that was stopped itself has heard nobody.
      if (now - before > longest_silence / 4)
        for (Peer& peer : peers_) peer.heard = peer.moved = peer.worked = now;
      before = now;
      look(now);
    }
  }

  void look(Clock::time_point now) {
    {
      const std::lock_guard lock(calls_);
      const bool beats = now - told_ >= between_beats;
      if (beats) told_ = now;
      note(own(), {calls_made_, work_of_process()}, now);
      for (size_t i = 0; i < peers_.size(); ++i)
        if (static_cast<int>(i) != rank_) exchange(i, now, beats);
    }
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (static_cast<int>(i) == rank_) continue;
      if (now - peers_[i].heard > longest_silence) give_up(i, now, longest_silence, "has not answered");
      // Ranks that wait for messages call for them all the time.
      if (patient_ || now - own().moved > patience_ / 2) continue;
      if (now - peers_[i].worked > patience_)
        give_up(i, now, patience_, "is alive, but has neither computed nor answered");
      if (now - peers_[i].moved > std::max(patience_, longest_work))
        give_up(i, now, std::max(patience_, longest_work), "computes, but has taken part in nothing");
    }
  }

  Peer& own() { return peers_[static_cast<size_t>(rank_)]; }

  static void note(Peer& peer, const Beat& beat, Clock::time_point now) {
    peer.heard = now;
    if (beat.calls != peer.last.calls) peer.moved = peer.worked = now;
    if (beat.work - peer.last.work >= least_work) peer.worked = now;
    peer.last = beat;
  }

  void exchange(size_t i, Clock::time_point now, bool beats) {
    Peer& peer = peers_[i];
    int done = 0;
    MPI_Test(&peer.hears, &done, MPI_STATUS_IGNORE);
    if (done) {
      note(peer, peer.comes, now);
      listen(i);
    }
    done = 1;
    if (peer.tells != MPI_REQUEST_NULL) MPI_Test(&peer.tells, &done, MPI_STATUS_IGNORE);
    if (!beats || !done) return;
    peer.told = {calls_made_, work_of_process()};
    MPI_Isend(&peer.told, 2, MPI_INT64_T, static_cast<int>(i), 0, comm_, &peer.tells);
  }

  // The lowest rank that is heard says it; the others leave it the time.
  [[noreturn]] void give_up(size_t silent, Clock::time_point now, std::chrono::seconds after,
                            const char* what) {
    int speaker = rank_;
    for (size_t i = 0; i < peers_.size(); ++i)
      if (i != silent && now - peers_[i].heard < longest_silence / 2)
        speaker = std::min(speaker, static_cast<int>(i));
    if (speaker == rank_)
      fmt::print(stderr, "error: rank {} of {} on {} {} for {} seconds; so all ranks end\n", silent,
                 peers_.size(), hosts_[silent], what, after.count());
    std::fflush(stderr);
    if (speaker != rank_) std::this_thread::sleep_for(std::chrono::seconds(3));
    _exit(2);
  }

  int rank_;
  std::vector<std::string> hosts_;
  std::mutex& calls_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Peer> peers_;
  std::chrono::seconds patience_;
  std::atomic<int64_t> calls_made_ = 0;
  std::atomic<bool> patient_ = false;
  Clock::time_point told_{};
  std::jthread thread_;
};

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
