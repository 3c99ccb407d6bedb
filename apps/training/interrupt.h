#pragma once

namespace tessera {

/// While it lives, SIGINT, SIGTERM and SIGUSR1 (a scheduler's warning that time is up) are noted instead of
/// ending the program, so that it can finish a step and save. A SIGINT after any of them ends the program at
/// once; a later SIGTERM or SIGUSR1, as schedulers send, is ignored while the state is saved.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The first signal that came, or 0.
  static int signal();

  /// Does as if this signal had come, which another process has told of.
  static void note(int signal);
};

}  // namespace tessera
