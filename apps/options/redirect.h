#pragma once

#include <unistd.h>

#include <cstdio>

namespace tessera {

// While it lives, output to stdout goes to the file descriptor instead.
class Redirect {
 public:
  explicit Redirect(int descriptor) {
    std::fflush(stdout);
    before_ = dup(STDOUT_FILENO);
    dup2(descriptor, STDOUT_FILENO);
  }
  ~Redirect() {
    std::fflush(stdout);
    if (before_ < 0) return;
    dup2(before_, STDOUT_FILENO);
    close(before_);
  }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

 private:
  int before_;
};

}  // namespace tessera
