#include "apps/interrupt.h"

#include <unistd.h>
#include <csignal>

namespace tessera {

namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void take_down(int number) {
  if (received) _exit(128 + number);
  received = number;
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
