#ifdef TESSERA_MPI

#include "apps/ranks/heartbeat.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

#include "apps/ranks/launch.h"

namespace tessera {

namespace {

constexpr std::chrono::seconds longest_silence{20};
constexpr std::chrono::milliseconds between_beats{1000};
constexpr std::chrono::seconds longest_work{600};  // without a call for messages
constexpr int64_t least_work = 10;                 // between two beats, of a rank that does anything

double milliseconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// The work that this process has done besides the thread that asks: milliseconds of its processors, and
// blocks and pages from and to disks. A process whose threads all wait does next to nothing.
int64_t work_of_process() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double computed =
      milliseconds_of(CLOCK_PROCESS_CPUTIME_ID) - milliseconds_of(CLOCK_THREAD_CPUTIME_ID);
  return static_cast<int64_t>(computed) + used.ru_inblock + used.ru_oublock + used.ru_majflt;
}

}  // namespace

Heartbeat::Heartbeat(MPI_Comm world, int rank, std::vector<std::string> hosts, std::mutex& calls)
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

void Heartbeat::stop() {
  thread_.request_stop();
  thread_.join();
  for (Peer& peer : peers_)
    for (MPI_Request* each : {&peer.hears, &peer.tells})
      if (*each != MPI_REQUEST_NULL) {
        MPI_Cancel(each);
        MPI_Request_free(each);
      }
}

void Heartbeat::note(Peer& peer, const Beat& beat, Clock::time_point now) {
  peer.heard = now;
  if (beat.calls != peer.last.calls) peer.moved = peer.worked = now;
  if (beat.work - peer.last.work >= least_work) peer.worked = now;
  peer.last = beat;
}

void Heartbeat::listen(size_t i) {
  MPI_Irecv(&peers_[i].comes, 2, MPI_INT64_T, static_cast<int>(i), 0, comm_, &peers_[i].hears);
}

void Heartbeat::run(const std::stop_token& stop) {
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

void Heartbeat::look(Clock::time_point now) {
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

void Heartbeat::exchange(size_t i, Clock::time_point now, bool beats) {
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
void Heartbeat::give_up(size_t silent, Clock::time_point now, std::chrono::seconds after, const char* what) {
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

}  // namespace tessera

#endif
