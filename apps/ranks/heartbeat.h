#pragma once

// Only a build with MPI has this file's class (TESSERA_MPI).

#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tessera {

/// Tells all other ranks that this one is alive, how often it has called for messages, and how much it has
/// worked; and notes when each of them was heard last, and when its numbers last grew. It ends this process,
/// naming the rank, where another is dead, hangs or loops (README.md).
class Heartbeat {
 public:
  /// `world` are all ranks, which lie on `hosts`; `calls` guards MPI.
  Heartbeat(MPI_Comm world, int rank, std::vector<std::string> hosts, std::mutex& calls);

  void note_call() { ++calls_made_; }

  /// From here on this rank waits for others that may have much to do.
  void be_patient() { patient_ = true; }

  /// No rank is missed from here on. All call it before the first of them ends.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  struct Beat {
    int64_t calls = 0, work = 0;
  };

  struct Peer {
    MPI_Request hears = MPI_REQUEST_NULL, tells = MPI_REQUEST_NULL;
    Beat comes, told, last;
    Clock::time_point heard{}, moved{}, worked{};  ///< moved: called for messages
  };

  Peer& own() { return peers_[static_cast<size_t>(rank_)]; }
  static void note(Peer& peer, const Beat& beat, Clock::time_point now);
  void listen(size_t i);
  void run(const std::stop_token& stop);
  void look(Clock::time_point now);
  void exchange(size_t i, Clock::time_point now, bool beats);
  [[noreturn]] void give_up(size_t silent, Clock::time_point now, std::chrono::seconds after,
                            const char* what);

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

}  // namespace tessera
