#pragma once

namespace tessera {

// While one lives, SIGINT and SIGTERM are taken down instead of ending the program, so that it can finish a
// step and save. A second one ends it at once.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came, or 0.
  static int signal();
};

}  // namespace tessera
