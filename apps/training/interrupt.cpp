#include "apps/training/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace tessera {

namespace {

std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // as a signal handler needs it

extern "C" void note_signal(int number) {
  int none = 0;
  if (!received.compare_exchange_strong(none, number) && number == SIGINT) _exit(128 + number);
}

constexpr int caught[] = {SIGINT, SIGTERM, SIGUSR1};

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int number : caught) sigaction(number, &action, nullptr);
}

Interrupt::~Interrupt() {
  for (const int number : caught) std::signal(number, SIG_DFL);
}

int Interrupt::signal() { return received; }

void Interrupt::note(int signal) {
  int none = 0;
  received.compare_exchange_strong(none, signal);
}

}  // namespace tessera
