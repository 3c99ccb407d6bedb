#include "apps/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace tessera {

namespace {

std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // as a signal handler needs it

extern "C" void take_down(int number) {
  if (received.exchange(number) != 0) _exit(128 + number);
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = take_down;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int Interrupt::signal() { return received; }

}  // namespace tessera
