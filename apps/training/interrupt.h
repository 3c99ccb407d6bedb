#pragma once

namespace tessera {

// While one lives, SIGINT, SIGTERM and SIGUSR1 (a scheduler's warning that time is up) are taken down instead
// of ending the program, so that it can finish a step and save. A SIGINT after any of them ends it at once;
// a SIGTERM or SIGUSR1 after one, as schedulers send, does not disturb the saving.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The first signal that came, or 0.
  static int signal();
};

}  // namespace tessera
