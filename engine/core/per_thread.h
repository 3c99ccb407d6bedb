#pragma once

// Memory that a thread keeps for its next call. A thread_local object with a destructor would end the program
// where there is no memory to register that destructor (glibc aborts); this throws std::bad_alloc instead.

#include <pthread.h>

#include <memory>
#include <new>

#include "engine/core/error.h"

namespace tessera {

/// One T for each thread that asks for it, made at its first call and destroyed with the thread (of the main
/// thread never). Declare it as a static; the number of them in a program is limited (1,024 on Linux).
template <class T> class PerThread {
 public:
  PerThread() {
    check(pthread_key_create(&key_, [](void* mine) { delete static_cast<T*>(mine); }) == 0,
          "PerThread: the system has no more keys for the data of threads");
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// This thread's own. Throws std::bad_alloc where there is no memory for it.
  T& of_this_thread() const {
    if (void* mine = pthread_getspecific(key_)) return *static_cast<T*>(mine);
    auto made = std::make_unique<T>();
    if (pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
    return *made.release();
  }

 private:
  pthread_key_t key_;
};

}  // namespace tessera
