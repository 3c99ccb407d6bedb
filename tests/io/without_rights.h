#pragma once

#include <unistd.h>

namespace tessera {

// A process of root is that of a user who owns nothing while one lives, so that modes of files hold for it.
class WithoutRights {
 public:
  WithoutRights() {
    if (root_) changed_ = setresgid(nobody, nobody, 0) == 0 && setresuid(nobody, nobody, 0) == 0;
  }
  ~WithoutRights() {
    if (changed_) changed_ = setresuid(0, 0, 0) == 0 && setresgid(0, 0, 0) == 0;
  }
  WithoutRights(const WithoutRights&) = delete;
  WithoutRights& operator=(const WithoutRights&) = delete;

  bool another_user() const { return changed_; }  // than the one who owns the files of the test

 private:
  static constexpr uid_t nobody = 65534;

  bool root_ = geteuid() == 0, changed_ = false;
};

}  // namespace tessera
